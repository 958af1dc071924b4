import { serve } from './typescript_server.mjs';
import { tools } from './echo_tool.mjs';

serve(tools);
