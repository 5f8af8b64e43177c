import type { Readable } from 'node:stream';
import type { LineSplitter } from '../protocol/lines.ts';

/** So many lines of a stream are dealt with before others get their turn. */
export const LINES_PER_TURN = 500;

/**
 * Has the lines of a stream dealt with as they come. One that has a great many of them, whatever they are, is not read
 * while others have their turn, so that its writer has to wait.
 */
export class LineReader {
  private readonly stream: Readable;
  private readonly lines: LineSplitter;
  private left = LINES_PER_TURN;
  /** What has come and is not dealt with; the first one from there on. */
  private unread: Buffer[] | undefined;
  private at = 0;
  private isOver = false;

  constructor(stream: Readable, lines: LineSplitter) {
    this.stream = stream;
    this.lines = lines;
    stream.on('data', this.take);
  }

  /** The stream is over: what is left of it is dealt with now. */
  end(): void {
    for (const chunk of this.unread ?? []) {
      this.lines.push(chunk, this.at);
      this.at = 0;
    }
    this.unread = undefined;
    this.isOver = true;
    this.lines.end();
  }

  /** Reads no more. The stream stays as it is. */
  leave(): void {
    this.unread = undefined;
    this.isOver = true;
    this.stream.off('data', this.take);
  }

  private readonly take = (chunk: Buffer): void => {
    // Node itself has a stream flow again when its process ends.
    if (this.unread !== undefined) {
      this.unread.push(chunk);
      return;
    }
    const at = this.push(chunk, 0);
    // Whoever hears of a line may have left it.
    if (this.left === 0 && !this.isOver) this.rest([chunk], at);
  };

  /** Takes as many lines as are left in this turn; gives the place behind them. */
  private push(chunk: Buffer, start: number): number {
    const before = this.lines.breaks;
    const at = this.lines.push(chunk, start, this.left);
    this.left -= this.lines.breaks - before;
    return at;
  }

  private rest(unread: Buffer[], at: number): void {
    this.unread = unread;
    this.at = at;
    this.stream.pause();
    setImmediate(() => {
      if (!this.isOver) this.goOn(unread);
    });
  }

  private goOn(unread: Buffer[]): void {
    this.left = LINES_PER_TURN;
    for (let chunk = unread.shift(); chunk !== undefined; chunk = unread.shift()) {
      const at = this.push(chunk, this.at);
      if (this.isOver) return;
      this.at = 0;
      if (this.left === 0) {
        unread.unshift(chunk);
        this.rest(unread, at);
        return;
      }
    }
    this.unread = undefined;
    this.stream.resume();
  }
}
