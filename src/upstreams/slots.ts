/** Somebody who waits for a slot. */
export interface SlotRequest {
  /** Those of one client wait in one line. */
  readonly client: object;
  /** The slot is there, and taken. */
  admitted(): void;
  /** Somebody who waits less has taken its place. */
  evicted(): void;
}

interface Place {
  request: SlotRequest;
  since: number;
}

/**
 * How many calls may be under way at once. Who comes too late waits in line, one line for each client; the lines take
 * turns, so that a client with many calls does not keep back one with few.
 */
export class Slots {
  private limit: number;
  private readonly queueLimit: number;
  private readonly lines = new Map<object, Place[]>();
  private isAdmitting = false;
  private whenEmpty: (() => void)[] = [];
  used = 0;
  queued = 0;

  constructor(limit: number, queueLimit: number) {
    this.limit = limit;
    this.queueLimit = queueLimit;
  }

  get hasRoom(): boolean {
    return this.used < this.limit && this.queued === 0;
  }

  private get isFull(): boolean {
    return this.queued >= this.queueLimit;
  }

  resize(limit: number): void {
    this.limit = limit;
    this.admit();
  }

  /** Takes a slot if one is free and nobody waits for it. */
  take(): boolean {
    if (!this.hasRoom) return false;
    this.used++;
    return true;
  }

  /**
   * Lines up; false where too many wait already. Then the place goes to the client that has fewer calls in line: the
   * last one of the longest line makes room.
   */
  wait(request: SlotRequest): boolean {
    if (this.isFull && !this.makeRoom(this.lines.get(request.client)?.length ?? 0)) return false;
    const place = { request, since: Date.now() };
    const line = this.lines.get(request.client);
    if (line === undefined) this.lines.set(request.client, [place]);
    else line.push(place);
    this.queued++;
    return true;
  }

  /** Somebody does not want to wait any more. */
  leave(request: SlotRequest): void {
    const line = this.lines.get(request.client);
    const index = line?.findIndex((place) => place.request === request) ?? -1;
    if (line === undefined || index === -1) return;
    line.splice(index, 1);
    if (line.length === 0) this.lines.delete(request.client);
    this.queued--;
  }

  release(): void {
    this.used--;
    if (this.queued > 0) this.admit();
    else if (this.used === 0 && this.whenEmpty.length > 0) this.tellEmpty();
  }

  /** Settles when nobody holds a slot or waits for one. */
  async drained(): Promise<void> {
    if (this.used === 0 && this.queued === 0) return;
    await new Promise<void>((resolve) => this.whenEmpty.push(resolve));
  }

  /** How long the one who has waited for longest has. */
  longestWaitMs(now: number): number {
    let longest = 0;
    for (const [first] of this.lines.values()) longest = Math.max(longest, now - first!.since);
    return longest;
  }

  private makeRoom(length: number): boolean {
    let longest: Place[] = [];
    for (const line of this.lines.values()) if (line.length > longest.length) longest = line;
    if (longest.length <= length + 1) return false;
    const { request } = longest.pop()!;
    this.queued--;
    request.evicted();
    return true;
  }

  private tellEmpty(): void {
    const told = this.whenEmpty;
    this.whenEmpty = [];
    for (const tell of told) tell();
  }

  private admit(): void {
    // Whoever is admitted may fail at once and release its slot in here: a loop, not a recursion.
    if (this.isAdmitting) return;
    this.isAdmitting = true;
    try {
      while (this.used < this.limit && this.queued > 0) {
        this.used++;
        this.takeNext().admitted();
      }
    } finally {
      this.isAdmitting = false;
    }
  }

  /** The first of the line whose turn it is; the line goes to the end. */
  private takeNext(): SlotRequest {
    const [[client, line]] = this.lines as Iterable<[object, Place[]]> as [[object, Place[]]];
    const { request } = line.shift()!;
    this.queued--;
    this.lines.delete(client);
    if (line.length > 0) this.lines.set(client, line);
    return request;
  }
}
