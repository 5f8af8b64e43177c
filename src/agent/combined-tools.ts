import { SwitchboardError } from '../errors.ts';
import { jsonSchemaOf, type NativeTool, runNative } from './native-tools.ts';
import { type AgentTool, type CallOptions, onceEach, type Toolbox, type ToolOutcome } from './toolbox.ts';

/** The server name of native tools. */
export const NATIVE_SERVER = 'native';

/** The names that the APIs of models accept. */
const namePattern = /^[A-Za-z0-9_-]{1,64}$/;

/** The tools of a toolbox, and native tools, which hide tools of the same name. */
export class CombinedTools implements Toolbox {
  private readonly others: Toolbox;
  private readonly warned: (message: string) => void;
  private readonly native = new Map<string, { tool: AgentTool; definition: NativeTool }>();

  constructor(others: Toolbox, native: readonly NativeTool[], warned: (message: string) => void) {
    this.others = others;
    this.warned = onceEach(warned);
    for (const definition of native) {
      const { name, description } = definition;
      if (!namePattern.test(name)) throw wrongName(name);
      if (this.native.has(name)) this.warned(`There are two native tools "${name}": the later one is used.`);
      const inputSchema = jsonSchemaOf(definition);
      const tool = { name, ownName: name, description, inputSchema, server: NATIVE_SERVER };
      this.native.set(name, { tool, definition });
    }
  }

  async start(): Promise<void> {
    await this.others.start();
  }

  tools(): readonly AgentTool[] {
    const shown = this.others.tools().filter(({ name, server }) => {
      if (!this.native.has(name)) return true;
      this.warned(`The tool "${name}" of server "${server}" is hidden by the native tool of that name.`);
      return false;
    });
    return [...shown, ...[...this.native.values()].map(({ tool }) => tool)];
  }

  async call(tool: AgentTool, args: Record<string, unknown>, options: CallOptions): Promise<ToolOutcome> {
    const native = this.native.get(tool.name);
    if (native === undefined) return this.others.call(tool, args, options);
    return runNative(native.definition, args, { signal: options.signal });
  }

  follow(listener: () => void): () => void {
    return this.others.follow(listener);
  }

  stop(): Promise<void> {
    return this.others.stop();
  }
}

function wrongName(name: string): SwitchboardError {
  return new SwitchboardError(
    'invalid_config',
    `A native tool cannot be named ${JSON.stringify(name)}: models accept 1 to 64 letters, digits, "_" and "-". Rename it.`,
  );
}
