// Adds a tool that this program implements, with a schema of zod, and calls it like that of any server.
import { Host } from 'switchboard-mcp';
import * as z from 'zod';

const host = await Host.create();
const schema = z.object({ city: z.string(), days: z.number().int().default(1) });
host.tool('forecast', schema, ({ city, days }) => ({ city, days, weather: 'sunny' }), {
  description: 'Forecasts the weather',
});
console.log((await host.call('local/forecast', { city: 'Lisbon' })).structured);
console.log(await host.anthropicTools());
await host.close();
