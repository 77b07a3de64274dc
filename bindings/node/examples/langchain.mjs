// Lets a model of LangChain use the tools of a host.
import { AIMessageChunk, HumanMessage } from '@langchain/core/messages';
import { FakeStreamingChatModel } from '@langchain/core/utils/testing';
import { Host } from 'switchboard-mcp';

const host = await Host.fromServers({
  everything: { command: 'npx', args: ['-y', '@modelcontextprotocol/server-everything'] },
});
const tools = await host.langchainTools();
// Scripted, so that the example needs no key: use your model instead, such as `new ChatOpenAI({ model })`.
const scripted = { id: '1', name: 'mcp__everything__get-sum', args: { a: 19, b: 23 } };
const model = new FakeStreamingChatModel({ chunks: [new AIMessageChunk({ content: '', tool_calls: [scripted] })] });
const answer = await model.bindTools(tools).invoke([new HumanMessage('What is 19 + 23?')]);
for (const call of answer.tool_calls ?? []) {
  const tool = tools.find(({ name }) => name === call.name);
  const message = await tool?.invoke({ ...call, type: 'tool_call' });
  console.log(message.content);
}
await host.close();
