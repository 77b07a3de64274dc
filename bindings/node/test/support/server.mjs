// A server for the tests. It reports what happens to the test over a socket, which ends with its process.
import { connect } from 'node:net';
import { Server } from '@modelcontextprotocol/sdk/server/index.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { CallToolRequestSchema, ListToolsRequestSchema } from '@modelcontextprotocol/sdk/types.js';

const port = Number(process.env.REPORT_PORT);
const socket = port ? connect(port, '127.0.0.1') : undefined;
const report = (text) => socket?.write(`${text}\n`);

const tool = (name, properties = {}) => ({
  name,
  description: `The tool ${name}`,
  inputSchema: { type: 'object', properties },
});
const tools = [
  tool('pid'),
  tool('wait'),
  tool('echo', { text: { type: 'string' } }),
  tool('big', { bytes: { type: 'integer' } }),
  tool('fail'),
  tool('refuse'),
  tool('steps'),
];
const text = (text, more = {}) => ({ content: [{ type: 'text', text }], ...more });

const server = new Server({ name: 'test', version: '1' }, { capabilities: { tools: {} } });
server.setRequestHandler(ListToolsRequestSchema, () => ({ tools }));
server.setRequestHandler(CallToolRequestSchema, async ({ params }, { signal, sendNotification }) => {
  const args = params.arguments ?? {};
  switch (params.name) {
    case 'pid':
      return text(String(process.pid));
    case 'wait':
      signal.addEventListener('abort', () => report('cancelled'));
      report('waiting');
      return new Promise(() => {});
    case 'echo':
      return text(args.text, { structuredContent: { echoed: args.text }, _meta: { note: 'kept_as_sent' } });
    case 'big':
      return text('x'.repeat(args.bytes));
    case 'fail':
      return text('as told', { isError: true });
    case 'steps':
      for (const progress of [1, 2]) {
        const { progressToken } = params._meta;
        await sendNotification({ method: 'notifications/progress', params: { progressToken, progress } });
      }
      return text('done');
    default:
      throw new Error('refused by the server');
  }
});
report(`pid ${process.pid}`);
await server.connect(new StdioServerTransport());
