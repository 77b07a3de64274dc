// Lets a model use a server. Set ANTHROPIC_API_KEY, OPENAI_API_KEY or OPENAI_BASE_URL.
import { Agent } from 'switchboard-mcp';

const agent = await Agent.create('.', { onApproval: (question) => question.server === 'files' });
const session = agent.session('.');
const count = await session.addMcpServer('files', 'stdio', 'npx', ['-y', '@modelcontextprotocol/server-filesystem', '.']);
console.log(`${count} tools`);
for await (const event of session.stream('Which files are here?')) {
  if (event.type === 'call_begins') console.log(`calls ${event.tool}`);
  if (event.type === 'text') process.stdout.write(event.text);
}
console.log();
await agent.close();
