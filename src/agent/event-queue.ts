/** What happens, for whoever takes it one by one, later. */
export class EventQueue<Event> implements AsyncIterable<Event> {
  private readonly waiting: Event[] = [];
  private isOver = false;
  private outcome: Promise<unknown> | undefined;
  private wake = () => {};

  add(event: Event): void {
    this.waiting.push(event);
    this.wake();
  }

  /** Nothing comes after this has settled. Where it fails, so does taking what comes after the last event. */
  endWith(work: Promise<unknown>): void {
    const over = () => {
      this.isOver = true;
      this.wake();
    };
    this.outcome = work;
    work.then(over, over);
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Event, void, undefined> {
    for (;;) {
      const next = this.waiting.shift();
      if (next !== undefined) yield next;
      else if (this.isOver) break;
      else {
        await new Promise<void>((resolve) => {
          this.wake = resolve;
        });
      }
    }
    await this.outcome;
  }
}
