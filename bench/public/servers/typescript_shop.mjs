import { serve } from './typescript_server.mjs';
import { tools } from './shop_tools.mjs';

serve(tools);
