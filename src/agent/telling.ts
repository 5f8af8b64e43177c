import { SwitchboardError } from '../errors.ts';
import type { AgentEvent } from './events.ts';

/** Tells a caller what happens in its chat. A listener that throws ends the chat, and is told of nothing more. */
export class Telling {
  /** Says so when the chat is to end: its caller wants it to, or its listener failed. */
  readonly signal: AbortSignal;
  private readonly listener: (event: AgentEvent) => void;
  private readonly broken = new AbortController();
  private isOver = false;

  constructor(listener: (event: AgentEvent) => void, signal: AbortSignal | undefined) {
    this.listener = listener;
    this.signal = signal === undefined ? this.broken.signal : AbortSignal.any([signal, this.broken.signal]);
  }

  tell(event: AgentEvent): void {
    if (this.isOver || this.broken.signal.aborted) return;
    try {
      this.listener(event);
    } catch (thrown) {
      const why = thrown instanceof Error ? thrown.message : String(thrown);
      const what = `The listener of the chat threw an error at "${event.type}": ${why}`;
      this.broken.abort(new SwitchboardError('listener_failed', what, { cause: thrown }));
    }
  }

  /** A model or a tool that does not listen to the signal may go on, and nobody is told. */
  end(): void {
    this.isOver = true;
  }
}
