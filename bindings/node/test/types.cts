// The types are there for CommonJS as well.
import switchboard = require('switchboard-mcp');

export async function count(): Promise<number> {
  const host: switchboard.Host = await switchboard.Host.create();
  return (await host.listTools()).length;
}
