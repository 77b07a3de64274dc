/** Settings of one server, as in `.mcp.json`. Further keys are those of Switchboard's configuration. */
export interface ServerEntry {
  type?: 'stdio' | 'http' | 'streamable-http' | 'sse' | 'websocket' | (string & {});
  command?: string;
  args?: string[];
  env?: Record<string, string>;
  cwd?: string;
  url?: string;
  headers?: Record<string, string>;
  [key: string]: unknown;
}

/** Servers by name, alone or under `mcpServers`. */
export type Servers = Record<string, ServerEntry> | { mcpServers: Record<string, ServerEntry> };

/** JSON that a server defines. */
export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

/** A JSON object that a server defines. */
export type JsonObject = { [key: string]: Json };

/** Passed to functions that Switchboard calls. */
export interface FunctionOptions {
  /** Aborted when the answer is no longer wanted. */
  signal: AbortSignal;
}

export interface ElicitationResult {
  action: 'accept' | 'decline' | 'cancel';
  content?: { [key: string]: string | number | boolean | string[] };
}

export interface SamplingResult {
  role: 'user' | 'assistant';
  content: JsonObject | JsonObject[];
  model: string;
  stopReason?: string;
}

export interface RootsResult {
  roots: { uri: string; name?: string }[];
}

/** A call that requires approval. */
export interface ApprovalQuestion {
  /** The name that a model calls. */
  name: string;
  server: string | null;
  tool: string;
  arguments: Json;
  /** Why approval is required. */
  because: string;
  remark: string | null;
  /** The whole question, to show to the user. */
  text: string;
  /** What can be granted until the program exits. */
  offers: { name: string; words: string }[];
}

/** `true` or `'once'` approves this call; `'session'` grants the first offer, `{ grant }` the one with this index. */
export type ApprovalAnswer = boolean | 'once' | 'session' | 'deny' | { grant: number } | null | undefined;

type Awaitable<T> = T | PromiseLike<T>;

/** A call that a hook inspects. */
export interface HookCall {
  event: 'before_call' | 'after_call';
  /** Unique in the host, and the same before and after. */
  call: string;
  /** The session of the agent that makes the call, or that of the program. */
  session: string;
  /** The name that a model calls. */
  name: string;
  server: string | null;
  tool: string;
  /** With what earlier hooks changed. */
  arguments: JsonObject | null;
  /** As the server sent it, with what earlier hooks changed; `null` before the call. */
  result: JsonObject | null;
}

/** What a hook does about a call. Without a key, the call stays as it is. */
export interface HookAnswer {
  /** `block` ends the call, or withholds its result. `ask` requires approval, `allow` needs none. */
  decision?: 'allow' | 'ask' | 'block';
  reason?: string;
  /** The arguments to send instead. */
  arguments?: object;
  /** The result to return instead, in the form of the protocol. */
  result?: object;
}

/** Inspects a call. What it throws blocks the call. */
export type Hook = (call: HookCall, options: FunctionOptions) => Awaitable<HookAnswer | null | undefined | void>;

/** A hook for all calls, or hooks by the tools that they cover: patterns as in permission rules. */
export type Hooks = Hook | { [tool: string]: Hook };

/** What servers and the permission gate may ask. A question without a function is declined. */
export interface Callbacks {
  onElicitation?(server: string, params: JsonObject, options: FunctionOptions): Awaitable<ElicitationResult>;
  onSampling?(server: string, params: JsonObject, options: FunctionOptions): Awaitable<SamplingResult>;
  onRoots?(server: string, options: FunctionOptions): Awaitable<RootsResult>;
  onApproval?(question: ApprovalQuestion, options: FunctionOptions): Awaitable<ApprovalAnswer>;
  /** Inspect every call before it is made: those of a model, and those of the program. */
  onBeforeCall?: Hooks;
  /** Inspect the result of every call. */
  onAfterCall?: Hooks;
  /** Milliseconds that a hook has for a call. Default: 60 seconds. */
  hookTimeout?: number;
}

export interface SignalOptions {
  /** Cancels the operation, which then rejects with the signal's reason. */
  signal?: AbortSignal | undefined;
}

export interface ServerOptions extends SignalOptions {
  /** Only this server, which must then be available. */
  server?: string | undefined;
}

export interface HostOptions extends Callbacks, SignalOptions {
  /** Use the configuration of this folder, as the program `switchboard` does. */
  cwd?: string | URL;
  /** Further configuration files. */
  files?: (string | URL)[];
  /** Further servers. */
  servers?: Servers;
  /** The environment of servers. Default: `process.env`. */
  env?: Record<string, string | undefined>;
}

export interface Progress {
  progress: number;
  total?: number;
  message?: string;
}

export interface CallOptions extends SignalOptions {
  /** Milliseconds without an answer or progress. */
  timeout?: number | undefined;
  /** Milliseconds in all. */
  totalTimeout?: number | undefined;
  onProgress?: ((progress: Progress) => void) | undefined;
}

/** The result of a call. Nothing of it is parsed before it is looked at. */
export declare class CallResult {
  private constructor();
  /** All text, one block per line; without text, the structured content as JSON. */
  readonly text: string;
  readonly content: JsonObject[];
  readonly structured: JsonObject | undefined;
  readonly meta: JsonObject | undefined;
  /** Whether the tool reports a failure; the text is then the reason. */
  readonly isError: boolean;
  /** The JSON that the server sent. */
  readonly raw: string;
  readonly server: string | undefined;
  /** The name of the tool on its server. */
  readonly tool: string;
  /** Milliseconds since the call was permitted. */
  readonly elapsed: number;
  toString(): string;
  toJSON(): JsonObject;
}

export declare class Tool {
  private constructor();
  /** The name that a model calls: `mcp__server__tool`. */
  readonly name: string;
  readonly server: string;
  /** Its name on the server. */
  readonly tool: string;
  readonly title: string | undefined;
  /** As a model sees it: sanitized and cut. */
  readonly description: string;
  readonly inputSchema: JsonObject;
  readonly outputSchema: JsonObject | undefined;
  /** The definition as the server wrote it. */
  readonly definition: JsonObject;
  /** How well it matches the query of `search`. */
  readonly score: number | undefined;
  toJSON(): JsonObject;
}

export interface Resource {
  server: string;
  uri: string;
  name: string;
  title?: string;
  description?: string;
  mimeType?: string;
  [key: string]: unknown;
}

export interface ResourceTemplate {
  server: string;
  uriTemplate: string;
  name: string;
  title?: string;
  description?: string;
  mimeType?: string;
  [key: string]: unknown;
}

export interface Prompt {
  server: string;
  name: string;
  title?: string;
  description?: string;
  arguments?: { name: string; description?: string; required?: boolean }[];
  [key: string]: unknown;
}

export interface ReadResult {
  contents: { uri: string; mimeType?: string; text?: string; blob?: string; [key: string]: unknown }[];
  [key: string]: unknown;
}

export interface PromptResult {
  description?: string;
  messages: { role: 'user' | 'assistant'; content: JsonObject }[];
  [key: string]: unknown;
}

export interface ServerStatus {
  name: string;
  state: 'disabled' | 'lazy' | 'pending' | 'connected' | 'idle' | 'failed' | 'needs-auth' | (string & {});
  reason: string | null;
  remedy: string | null;
  transport: string | null;
  required: boolean;
  tools: number;
  protocolVersion: string | null;
  restarts: number;
  latencyMs: number | null;
  startupMs: number | null;
  pid: number | null;
  /** Seconds since 1970 at which it entered this state. */
  since: number;
}

interface Event<Type extends string> {
  type: Type;
}

interface ServerEvent<Type extends string> extends Event<Type> {
  server: string;
}

interface StateEvent<Type extends string> extends ServerEvent<Type> {
  state: string;
  reason: string | null;
}

interface CallEvent<Type extends string> extends Event<Type> {
  call: string;
}

/** What happens in a host. */
export type HostEvent =
  | StateEvent<'startup_update'>
  | (Event<'startup_complete'> & { ready: string[]; failed: { name: string; reason: string | null }[] })
  | (ServerEvent<'installing'> & { elapsedMs: number; line: string | null })
  | StateEvent<'state_changed'>
  | ServerEvent<'removed'>
  | (ServerEvent<'catalog_changed'> & { list: 'tools' | 'prompts' | 'resources' | 'resource_templates' })
  | (ServerEvent<'tools_pinned'> & { tools: string[] })
  | (ServerEvent<'pins_differ'> & { tools: string[]; instructions: boolean })
  | (ServerEvent<'suspicious'> & { found: { tool: string | null; flags: string[] }[] })
  | (ServerEvent<'resource_updated'> & { uri: string })
  | (CallEvent<'call_begin'> & { server: string | null; tool: string })
  | (CallEvent<'call_progress'> & {
      progress: number | null;
      total: number | null;
      message: string | null;
      elapsedMs: number;
    })
  | (CallEvent<'call_end'> & {
      server: string | null;
      tool: string;
      elapsedMs: number;
      isError: boolean;
      bytes: number | null;
      error: string | null;
    })
  | (ServerEvent<'log'> & {
      source: 'stderr' | 'message' | 'noise';
      level: string | null;
      logger: string | null;
      text: string;
    })
  | ServerEvent<'auth_needed'>
  | (ServerEvent<'logged_in'> & { tools: number })
  /** The program was too slow to receive this many events. */
  | (Event<'lagged'> & { lost: number });

/** An async iterator that can be closed early. */
export interface Stream<T> extends AsyncIterableIterator<T> {
  next(): Promise<IteratorResult<T, undefined>>;
  return(): Promise<IteratorResult<T, undefined>>;
  [Symbol.asyncIterator](): Stream<T>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** A schema of zod, or of any library that implements Standard Schema and can write JSON Schema. */
export interface SchemaOf<T> {
  readonly '~standard': {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown) => unknown;
    readonly types?: { readonly input: unknown; readonly output: T } | undefined;
  };
}

export interface ToolOptions {
  description?: string;
  title?: string;
  /** Whether it changes nothing. This and the next three become the annotations of the tool. */
  readOnly?: boolean;
  /** Whether its changes can destroy something. */
  destructive?: boolean;
  /** Whether a second call with the same arguments changes nothing more. */
  idempotent?: boolean;
  /** Whether it reaches things outside of the program, such as the web. */
  openWorld?: boolean;
}

export interface OpenAiTool {
  type: 'function';
  function: { name: string; description: string; parameters: JsonObject };
}

export interface OpenAiResponsesTool {
  type: 'function';
  name: string;
  description: string;
  parameters: JsonObject;
  strict: boolean;
}

export interface AnthropicTool {
  name: string;
  description: string;
  input_schema: JsonObject & { type: 'object' };
}

/** A tool of LangChain; `any` if `@langchain/core` is not installed. */
// @ts-ignore: an optional package
export type LangChainTool = import('@langchain/core/tools').DynamicStructuredTool;

/** The servers of a program, and their tools. */
export declare class Host {
  private constructor();
  /** Creates a host and starts its servers, without waiting for them. */
  static create(options?: HostOptions): Promise<Host>;
  /** Creates a host with the configuration of a folder; default: the current one. */
  static fromConfig(cwd?: string | URL, options?: HostOptions): Promise<Host>;
  /** Creates a host with servers by name, alone or under `mcpServers`. */
  static fromServers(servers: Servers, options?: HostOptions): Promise<Host>;

  /** Waits until every server has connected or failed, and returns the tools. */
  listTools(options?: ServerOptions): Promise<Tool[]>;
  /** Calls a tool by the name that a model calls, or as `server/tool`. */
  call(name: string, args?: object | null, options?: CallOptions): Promise<CallResult>;
  /** Searches the tools, best match first. */
  search(query: string, options?: SignalOptions & { limit?: number }): Promise<Tool[]>;
  resources(options?: ServerOptions): Promise<Resource[]>;
  resourceTemplates(options?: ServerOptions): Promise<ResourceTemplate[]>;
  read(server: string, uri: string, options?: SignalOptions): Promise<ReadResult>;
  prompts(options?: ServerOptions): Promise<Prompt[]>;
  prompt(server: string, name: string, args?: Record<string, string>, options?: SignalOptions): Promise<PromptResult>;
  status(): ServerStatus[];
  /** The events from now on. Waiting for one does not keep Node running. */
  events(options?: SignalOptions): Stream<HostEvent>;
  /** Adds a server, waits until it is connected, and returns the number of its tools. */
  addServer(name: string, entry: ServerEntry, options?: SignalOptions): Promise<number>;
  /** Removes a server; `false` if no server has that name. */
  removeServer(name: string): Promise<boolean>;
  enable(name: string): Promise<void>;
  disable(name: string): Promise<void>;
  /** Reconnects a server, and returns the number of its tools. */
  restart(name: string, options?: SignalOptions): Promise<number>;
  /** Logs in to a server: `open` shows an address to the user. */
  login(name: string, options: SignalOptions & { open: (url: string) => void }): Promise<void>;
  /**
   * Adds a tool that this program implements, as a tool of the server `local`. What the function returns becomes the
   * result: text, any JSON, or an object with `content`. What it throws is an error for the caller.
   */
  tool<T>(name: string, schema: SchemaOf<T>, run: (args: T, options: FunctionOptions) => unknown, options?: ToolOptions): void;
  tool(
    name: string,
    schema: object | null | undefined,
    run: (args: any, options: FunctionOptions) => unknown,
    options?: ToolOptions,
  ): void;
  /** The tools as OpenAI takes them: for Chat Completions, or for Responses. */
  openaiTools(options: ServerOptions & { responses: true }): Promise<OpenAiResponsesTool[]>;
  openaiTools(options?: ServerOptions & { responses?: false }): Promise<OpenAiTool[]>;
  /** The tools as Anthropic takes them. */
  anthropicTools(options?: ServerOptions): Promise<AnthropicTool[]>;
  /** The tools for LangChain, which must be installed (`@langchain/core`). The artifact of a result is the `CallResult`. */
  langchainTools(options?: ServerOptions): Promise<LangChainTool[]>;
  /** Closes every connection and ends every server. Can be called more than once. */
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

export interface AgentOptions extends Callbacks, SignalOptions {
  /** The model; default: as the environment selects. */
  model?: string;
  /** Appended to the system prompt. */
  instructions?: string;
  /** The maximum number of model requests in a turn. */
  maxRequests?: number;
  /** The maximum number of tokens in a turn. */
  maxTokens?: number;
  /** Further configuration files. */
  files?: (string | URL)[];
  /** Further servers. */
  servers?: Servers;
  /** The environment of servers and of the model. Default: `process.env`. */
  env?: Record<string, string | undefined>;
}

export interface Usage {
  input: number;
  cacheRead: number;
  cacheWrite: number;
  output: number;
  isEstimate?: boolean;
  /** At list prices; absent if no price is known. */
  cost?: Cost;
}

export interface Cost {
  /** The amount in US dollars. */
  usd: number;
  /** The day on which the prices were checked, as YYYY-MM-DD. */
  asOf: string;
  /** Whether tokens of a model without a known price are missing. */
  isPartial?: boolean;
}

export interface FailedServer {
  name: string;
  state: string;
  reason: string;
  stderr?: string[];
}

export interface CallSummary {
  id: string;
  name: string;
  arguments: Json;
  isError: boolean;
  elapsedMs: number;
}

/** The end of a turn. `String(reply)` is the answer. */
export declare class Reply {
  private constructor();
  readonly sessionId: string;
  readonly response: string;
  readonly toolCalls: CallSummary[];
  readonly usage: Usage;
  readonly reason: 'done' | 'refused' | 'length' | 'turn_budget' | 'token_budget' | (string & {});
  readonly failedServers: FailedServer[];
  toString(): string;
}

export type Content = { type: 'text'; text: string } | { type: 'image'; mimeType: string; data: string };

/** What happens in a turn. */
export type SessionEvent =
  | (Event<'startup_update'> & { server: string; state: string; tools?: number; reason?: string })
  | (Event<'startup_complete'> & { ready: string[]; failedServers: FailedServer[] })
  | (Event<'started'> & { sessionId: string; model: string; tools: number; failedServers: FailedServer[] })
  | (Event<'text'> & { text: string })
  | (Event<'thinking'> & { text: string })
  | (Event<'retrying'> & { reason: string; waitMs: number; attempt: number; parent?: string })
  | (Event<'call_begins'> & {
      id: string;
      name: string;
      server?: string;
      tool: string;
      arguments: Json;
      parent?: string;
    })
  | (Event<'call_progress'> & { id: string; progress?: number; total?: number; message?: string; elapsedMs?: number })
  | (Event<'call_ends'> & {
      id: string;
      name: string;
      server?: string;
      tool: string;
      content: Content[];
      isError: boolean;
      elapsedMs: number;
      display?: string;
      parent?: string;
    })
  | (Event<'tools_changed'> & { added: string[]; removed: string[] })
  | (Event<'compacted'> & { before: number; after: number })
  | (Event<'usage'> & { usage: Usage; parent?: string })
  | (Event<'notice'> & { text: string; parent?: string })
  | (Event<'ended'> & Omit<Reply, 'toString'>);

export type MessagePart =
  | Content
  | { type: 'thinking'; text: string; seal?: string; provider: string }
  | { type: 'tool_call'; id: string; name: string; arguments: string }
  | { type: 'tool_result'; call: string; content: Content[]; isError: boolean };

export interface Message {
  role: 'user' | 'assistant';
  parts: MessagePart[];
}

export interface StoredSession {
  id: string;
  workspace: string;
  title: string | null;
  messages: number;
}

/** A model with the tools of a host. */
export declare class Agent {
  private constructor();
  /** Creates an agent from a configuration file such as `agent.hcl`, or from a folder; default: the current one. */
  static create(path?: string | URL, options?: AgentOptions): Promise<Agent>;
  readonly host: Host;
  /** Creates a session that works in a folder; default: the current one. */
  session(folder?: string | URL): Session;
  /** Loads a stored session. */
  resume(id: string, options?: SignalOptions): Promise<Session>;
  /** Lists the stored sessions, newest first. */
  sessions(): Promise<StoredSession[]>;
  /** Deletes a stored session; `false` if there is none with this id. */
  delete(id: string): Promise<boolean>;
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** A conversation of an agent. */
export declare class Session {
  private constructor();
  /** The id to resume it with. */
  readonly id: string;
  /** The folder that it works in. */
  readonly workspace: string;
  readonly host: Host;
  /** Adds a server, waits until it is connected, and returns the number of its tools. */
  addMcpServer(name: string, entry: ServerEntry): Promise<number>;
  addMcpServer(
    name: string,
    transport: string,
    command?: string,
    args?: string[],
    url?: string,
    headers?: Record<string, string>,
    env?: Record<string, string>,
  ): Promise<number>;
  /** Sends a message and waits for the end of the turn. */
  send(text: string, options?: SignalOptions): Promise<Reply>;
  /** Sends a message. Leaving the loop early interrupts the turn. */
  stream(text: string, options?: SignalOptions): Stream<SessionEvent>;
  /** Interrupts the running turn: its model request and its calls are cancelled. */
  interrupt(): void;
  messages(): Promise<Message[]>;
  usage(): Promise<Usage>;
  compact(options?: SignalOptions): Promise<void>;
}

export type ErrorCode =
  | 'not_found'
  | 'invalid_server'
  | 'invalid_configuration'
  | 'invalid_arguments'
  | 'denied'
  | 'needs_login'
  | 'unavailable'
  | 'timed_out'
  | 'connection_lost'
  | 'refused'
  | 'unexpected_result'
  | 'model'
  | 'cancelled'
  | 'closed'
  | 'forked'
  | 'internal';

export interface SwitchboardErrorOptions {
  code?: ErrorCode;
  server?: string;
  step?: string;
  hint?: string;
  cause?: unknown;
}

/** An error of Switchboard. */
export declare class SwitchboardError extends Error {
  constructor(message: string, options?: SwitchboardErrorOptions);
  readonly code: ErrorCode;
  /** The server concerned. */
  readonly server: string | undefined;
  /** The step of connecting that failed. */
  readonly step: string | undefined;
  /** What to do about it. */
  readonly hint: string | undefined;
}

/** No server or tool has that name. */
export declare class NotFoundError extends SwitchboardError {}
/** The description of a server is invalid. */
export declare class InvalidServerError extends SwitchboardError {}
/** A configuration file or entry cannot be used. */
export declare class InvalidConfigurationError extends SwitchboardError {}
/** The arguments do not match the tool's schema. */
export declare class InvalidArgumentsError extends SwitchboardError {}
/** A rule, a hook or the user denied the call. */
export declare class DeniedError extends SwitchboardError {}
/** The server requires a login, or a login failed. */
export declare class NeedsLoginError extends SwitchboardError {}
/** The server is disabled, failed, or not connected. */
export declare class UnavailableError extends SwitchboardError {}
/** A deadline expired; the call was cancelled. */
export declare class TimedOutError extends SwitchboardError {}
/** The connection was lost; the call may or may not have taken effect. */
export declare class ConnectionLostError extends SwitchboardError {}
/** The server answered with an error, or violated the protocol. */
export declare class RefusedError extends SwitchboardError {}
/** The result does not have the requested form. */
export declare class UnexpectedResultError extends SwitchboardError {}
/** The model is not configured, or did not answer. */
export declare class ModelError extends SwitchboardError {}
/** The program cancelled the operation. */
export declare class CancelledError extends SwitchboardError {}
/** The host was closed. */
export declare class ClosedError extends SwitchboardError {}
/** The process was forked after the host was created. */
export declare class ForkedError extends SwitchboardError {}
/** A bug in Switchboard. */
export declare class InternalError extends SwitchboardError {}
