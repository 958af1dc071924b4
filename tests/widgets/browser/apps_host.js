import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { AppBridge, PostMessageTransport } from "@modelcontextprotocol/ext-apps/app-bridge";
window.x = [Client, StreamableHTTPClientTransport, AppBridge, PostMessageTransport];
