// mcp-lite as its documentation serves it, with Hono.
import { serve } from '@hono/node-server';
import { Hono } from 'hono';
import { answer } from './mcp_lite_server.mjs';

const app = new Hono();
app.all('/mcp', (context) => answer(context.req.raw));
serve({ fetch: app.fetch, hostname: '127.0.0.1', port: Number(process.env.PORT) });
