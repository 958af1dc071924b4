// The tool of mcp-use's benchmark, the same for every server on Node.
import { z } from 'zod';

export const tools = [
  {
    name: 'benchmark_echo',
    description: 'Return the message.',
    schema: z.object({ message: z.string() }),
    run: async ({ message }) => ({ content: [{ type: 'text', text: message }] }),
  },
];
