// Prints the result of MCPJam's checks of MCP Apps against the server at a URL, as JSON.
// Usage: mcpjam.mjs FOLDER URL, where FOLDER/node_modules has the package @mcpjam/sdk.
import { pathToFileURL } from "node:url";

const [folder, url] = process.argv.slice(2);
const sdk = await import(pathToFileURL(`${folder}/node_modules/@mcpjam/sdk/dist/index.js`));
const result = await new sdk.MCPAppsConformanceTest({ url, timeout: 30000 }).run();
process.stdout.write(JSON.stringify(result), () => process.exit(0));
