// Lists the tools of a server and calls one.
import { Host } from 'switchboard-mcp';

const host = await Host.fromServers({
  files: { command: 'npx', args: ['-y', '@modelcontextprotocol/server-filesystem', '.'] },
});
const tools = await host.listTools();
console.log(`${tools.length} tools, such as ${tools[0]?.name}`);
const result = await host.call('files/list_directory', { path: '.' });
console.log(result.text);
await host.close();
