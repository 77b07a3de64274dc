// Switchboard's Node package against a stdio server: `node node_switchboard.cjs CALLS SERVER [ARGUMENT...]`.
//
// Prints one line of JSON, as the other clients of this folder do, and two figures more:
//   import      the import of the package
//   memory      the peak of this process, in bytes
//
// SWITCHBOARD_PACKAGE is the folder of the package.

const now = () => process.hrtime.bigint();
const since = (start) => Number(now() - start);

const importing = now();
const { Host } = require(process.env.SWITCHBOARD_PACKAGE);
const imported = since(importing);

const [calls, command, ...args] = process.argv.slice(2);
const count = Number(calls);
const IN_FLIGHT = 64;

async function main() {
  const connecting = now();
  const host = await Host.fromServers({ echo: { command, args, env: { ...process.env } } });
  await host.listTools({ server: "echo" });
  const connect = since(connecting);
  const call = () => host.call("echo/echo_0", { text: "hello" });

  for (let warm = 0; warm < Math.min(count, 200); warm++) await call();

  const times = [];
  for (let done = 0; done < count; done++) {
    const one = now();
    await call();
    times.push(since(one));
  }
  const sequential = times.sort((left, right) => left - right)[Math.floor(count / 2)];

  const many = now();
  let started = 0;
  const worker = async () => {
    while (started++ < count) await call();
  };
  await Promise.all(Array.from({ length: IN_FLIGHT }, worker));
  const concurrent = since(many) / count;

  const listing = now();
  const tools = await host.listTools();
  const list = since(listing);

  await host.close();
  const memory = process.resourceUsage().maxRSS * 1024;
  console.log(
    JSON.stringify({ client: "switchboard-node", import: imported, connect, sequential, concurrent, list, tools: tools.length, memory }),
  );
}

main();
