import { serve } from './tmcp_server.mjs';
import { tools } from './shop_tools.mjs';

serve(tools);
