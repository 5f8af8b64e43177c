export interface SlotRequest {
  /** Each client has its own queue. */
  readonly client: object;
  admitted(): void;
  /** It lost its place to a client with fewer queued calls. */
  evicted(): void;
}

interface Place {
  request: SlotRequest;
  since: number;
}

/** Limits the calls in flight. Further calls are queued, one queue for each client, and the queues take turns. */
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

  /** Takes a slot if one is free and no call is queued. */
  take(): boolean {
    if (!this.hasRoom) return false;
    this.used++;
    return true;
  }

  /** Queues a call. If the queue is full, evicts the last call of the longest queue, or returns false if that is its own. */
  wait(request: SlotRequest): boolean {
    if (this.isFull && !this.makeRoom(this.lines.get(request.client)?.length ?? 0)) return false;
    const place = { request, since: Date.now() };
    const line = this.lines.get(request.client);
    if (line === undefined) this.lines.set(request.client, [place]);
    else line.push(place);
    this.queued++;
    return true;
  }

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

  /** Resolves when no call holds a slot or is queued. */
  async drained(): Promise<void> {
    if (this.used === 0 && this.queued === 0) return;
    await new Promise<void>((resolve) => this.whenEmpty.push(resolve));
  }

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
    // An admitted call may fail and release its slot at once: loop instead of recursing.
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

  /** Takes the first call of the next queue, which moves to the end. */
  private takeNext(): SlotRequest {
    const [[client, line]] = this.lines as Iterable<[object, Place[]]> as [[object, Place[]]];
    const { request } = line.shift()!;
    this.queued--;
    this.lines.delete(client);
    if (line.length > 0) this.lines.set(client, line);
    return request;
  }
}
