import { stopping } from '../../errors.ts';

interface UnderWay {
  server: string;
  cut: AbortController;
}

/** Calls that are made for others than clients of MCP, so that a stop can wait for them. */
export class CallsUnderWay {
  private readonly calls = new Set<UnderWay>();
  private whenIdle = () => {};
  private isStopping = false;

  /** The servers that are called, one name for each call. */
  underWay(): string[] {
    return [...this.calls].map(({ server }) => server);
  }

  /** Makes a call, which fails when there is no more time for it. */
  async run<Result>(
    server: string,
    signal: AbortSignal | undefined,
    make: (signal: AbortSignal) => Promise<Result>,
  ): Promise<Result> {
    if (this.isStopping) throw stopping();
    const call = { server, cut: new AbortController() };
    const cut = call.cut.signal;
    this.calls.add(call);
    try {
      return await make(signal === undefined ? cut : AbortSignal.any([signal, cut]));
    } catch (error) {
      throw cut.aborted ? stopping() : error;
    } finally {
      this.calls.delete(call);
      // Its answer is still to be sent.
      if (this.calls.size === 0) setImmediate(this.whenIdle);
    }
  }

  /** Takes no more. Settles when none is under way any more. */
  drain(): Promise<void> {
    this.isStopping = true;
    return new Promise((resolve) => {
      this.whenIdle = resolve;
      if (this.calls.size === 0) resolve();
    });
  }

  /** Ends those that are left, the last first: one that waits in line is not to be begun. */
  cut(): void {
    for (const { cut } of [...this.calls].toReversed()) cut.abort();
  }
}
