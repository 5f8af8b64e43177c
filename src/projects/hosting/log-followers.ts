import type { HostedLog, LogLine } from '../../hosting/log.ts';

export interface LogListener {
  line(line: LogLine): void;
  /** The server is gone. */
  removed(): void;
}

interface Follower {
  id: string;
  listener: LogListener;
  /** What it follows; undefined while nobody runs the server here. */
  log: HostedLog | undefined;
  unfollow(): void;
}

/** Those who read the logs of hosted servers as they are written. */
export class LogFollowers {
  private readonly followers = new Set<Follower>();
  private readonly logOf: (id: string) => HostedLog | undefined;

  constructor(logOf: (id: string) => HostedLog | undefined) {
    this.logOf = logOf;
  }

  /** The lines that there are, and every line after them. */
  add(id: string, listener: LogListener): { lines: readonly LogLine[]; stop(): void } {
    const follower: Follower = { id, listener, log: undefined, unfollow() {} };
    this.followLog(follower, false);
    this.followers.add(follower);
    return {
      lines: follower.log?.lines ?? [],
      stop: () => {
        follower.unfollow();
        this.followers.delete(follower);
      },
    };
  }

  /** Only these servers are left. */
  keep(ids: ReadonlySet<string>): void {
    for (const follower of this.followers) {
      if (ids.has(follower.id)) continue;
      this.followers.delete(follower);
      follower.listener.removed();
    }
  }

  /** There may be other logs now. */
  refresh(): void {
    for (const follower of this.followers) this.followLog(follower, true);
  }

  /** Another log is there where the server is run here again, or was not run here before. */
  private followLog(follower: Follower, tellsLines: boolean): void {
    const log = this.logOf(follower.id);
    if (log === undefined || log === follower.log) return;
    follower.unfollow();
    follower.log = log;
    if (tellsLines) for (const line of log.lines) follower.listener.line(line);
    follower.unfollow = log.follow((line) => follower.listener.line(line));
  }
}
