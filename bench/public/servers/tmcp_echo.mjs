import { serve } from './tmcp_server.mjs';
import { tools } from './echo_tool.mjs';

serve(tools);
