import type { ChatView, ToolCallView } from '../../api/chat-views.ts';
import { oneLine, printable, summary } from '../output.ts';

export interface Screen {
  /** For the model's text. */
  stdout: NodeJS.WritableStream & { isTTY?: boolean };
  /** For tool calls. */
  stderr: NodeJS.WritableStream;
}

export class ChatScreen {
  private readonly screen: Screen;
  private isInLine = false;

  constructor(screen: Screen) {
    this.screen = screen;
  }

  text(text: string): void {
    const { stdout } = this.screen;
    const shown = printable(text);
    if (shown === '') return;
    stdout.write(shown);
    this.isInLine = !shown.endsWith('\n');
  }

  toolStart({ name, server, input }: Pick<ToolCallView, 'name' | 'server' | 'input'>): void {
    const where = server === null ? '' : ` (${server})`;
    this.note(`→ ${name}${where} ${summary(oneLine(JSON.stringify(input)), 120)}`);
  }

  toolEnd({ name, is_error, text, duration_ms }: ToolCallView): void {
    const how = is_error ? 'failed' : `${Math.round(duration_ms)} ms`;
    this.note(`${is_error ? '✗' : '←'} ${name}: ${how}${tail(text)}`);
  }

  done({ stop_reason, steps }: ChatView): void {
    this.endLine();
    if (stop_reason === 'step_limit') this.note(`note: stopped after ${steps} steps (--max-steps)`);
    if (stop_reason === 'length') this.note('note: the response reached its maximum length (--max-tokens)');
    if (stop_reason === 'refused') this.note('note: the model refused to continue');
  }

  endLine(): void {
    if (this.isInLine) this.screen.stdout.write('\n');
    this.isInLine = false;
  }

  private note(line: string): void {
    this.endLine();
    this.screen.stderr.write(`${oneLine(line)}\n`);
  }
}

function tail(text: string): string {
  const line = oneLine(summary(text, 100));
  return line === '' ? '' : `, ${line}`;
}
