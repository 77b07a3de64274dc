// Compiled in strict mode, and not run: what programs write must have the types they expect.
import {
  Agent,
  Host,
  SwitchboardError,
  TimedOutError,
  type CallResult,
  type ErrorCode,
  type HostEvent,
  type JsonObject,
  type Reply,
  type ServerStatus,
  type SessionEvent,
  type Tool,
} from 'switchboard-mcp';
import type { StructuredToolInterface } from '@langchain/core/tools';
import * as z from 'zod';

function is<T>(_value: T): void {}

export async function hosts(signal: AbortSignal): Promise<void> {
  await using host = await Host.fromConfig('.', {
    signal,
    env: process.env,
    onElicitation: async (server, params, { signal }) => {
      is<string>(server);
      is<AbortSignal>(signal);
      return params['message'] ? { action: 'accept', content: { name: 'Ada' } } : { action: 'decline' };
    },
    onSampling: () => ({ role: 'assistant', content: { type: 'text', text: 'hello' }, model: 'mine' }),
    onRoots: () => ({ roots: [{ uri: 'file:///tmp' }] }),
    onApproval: (question) => question.server === 'files' || { grant: 0 },
    onBeforeCall: async ({ name, arguments: args }, { signal }) => {
      is<AbortSignal>(signal);
      return name === 'Bash' ? { decision: 'block', reason: 'no commands' } : { arguments: { ...args } };
    },
    onAfterCall: { 'mcp__files__*': ({ result }) => is<JsonObject | null>(result) },
    hookTimeout: 1_000,
  });
  is<Tool[]>(await host.listTools({ server: 'files' }));
  const result = await host.call('files/read', { path: '.' }, { timeout: 100, signal, onProgress: ({ total }) => is<number | undefined>(total) });
  is<CallResult>(result);
  is<string>(result.text + result.raw + result.tool);
  is<boolean>(result.isError);
  is<number | undefined>((await host.search('sum', { limit: 2 }))[0]?.score);
  is<string | undefined>((await host.resources())[0]?.uri);
  is<string | undefined>((await host.resourceTemplates())[0]?.uriTemplate);
  is<string | undefined>((await host.read('files', 'file:///')).contents[0]?.text);
  is<string | undefined>((await host.prompts())[0]?.name);
  is<'user' | 'assistant' | undefined>((await host.prompt('files', 'name', { a: 'b' })).messages[0]?.role);
  is<ServerStatus[]>(host.status());
  for await (const event of host.events({ signal })) {
    is<HostEvent>(event);
    if (event.type === 'call_end') is<number>(event.elapsedMs);
    if (event.type === 'log') is<string>(event.text);
    // @ts-expect-error: keys are in camel case
    event.elapsed_ms;
  }
  is<number>(await host.addServer('more', { command: 'npx', args: ['-y', 'server'], toolTimeoutSec: 3 }));
  is<boolean>(await host.removeServer('more'));
  await host.enable('files');
  await host.disable('files');
  is<number>(await host.restart('files'));
  await host.login('files', { open: (url) => is<string>(url) });
  host.tool('zod', z.object({ name: z.string(), times: z.number().default(1) }), ({ name, times }, { signal }) => {
    is<string>(name);
    is<number>(times);
    is<AbortSignal>(signal);
    return { name };
  });
  host.tool('json', { type: 'object' }, async () => 'done', { description: 'Does it', title: 'Do', readOnly: true });
  // @ts-expect-error: hints are options
  host.tool('hints', null, () => 1, { annotations: { readOnlyHint: true } });
  is<string | undefined>((await host.openaiTools())[0]?.function.name);
  is<boolean | undefined>((await host.openaiTools({ responses: true }))[0]?.strict);
  is<'object' | undefined>((await host.anthropicTools())[0]?.input_schema.type);
  is<StructuredToolInterface[]>(await host.langchainTools());
  // @ts-expect-error: servers have entries
  await Host.fromServers({ files: 'npx' });
  // @ts-expect-error: a host is not constructed
  new Host();
  await Host.create({ servers: { mcpServers: { files: { url: 'https://example.com' } } }, cwd: new URL('file:///') });
}

export async function agents(): Promise<string> {
  await using agent = await Agent.create('agent.hcl', { model: 'openai/gpt', maxRequests: 3, instructions: 'Be brief.' });
  const session = agent.session('.');
  is<number>(await session.addMcpServer('a', 'stdio', 'npx', ['-y', 'server']));
  is<number>(await session.addMcpServer('b', 'streamable-http', undefined, undefined, 'https://example.com', { Authorization: 'x' }));
  is<number>(await session.addMcpServer('c', { url: 'https://example.com' }));
  for await (const event of session.stream('Go')) {
    is<SessionEvent>(event);
    if (event.type === 'text') is<string>(event.text);
    if (event.type === 'ended') is<string>(event.response);
  }
  session.interrupt();
  is<number>((await session.usage()).cacheRead);
  is<'user' | 'assistant' | undefined>((await session.messages())[0]?.role);
  await session.compact();
  is<string | undefined>((await agent.sessions())[0]?.id);
  is<boolean>(await agent.delete(session.id));
  const reply: Reply = await (await agent.resume(session.id)).send('Again');
  return `${reply.response} ${String(reply)}`;
}

export function errors(error: unknown): ErrorCode | undefined {
  if (error instanceof TimedOutError) return error.code;
  if (error instanceof SwitchboardError) return error.server && error.step && error.hint ? error.code : undefined;
  return undefined;
}
