// mcp-lite with srvx, which costs it less than Hono.
import { serve } from 'srvx';
import { answer } from './mcp_lite_server.mjs';

serve({
  hostname: '127.0.0.1',
  port: Number(process.env.PORT),
  silent: true,
  fetch: (request) => answer(request),
});
