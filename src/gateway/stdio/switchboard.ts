/** The running Switchboard that everything is passed to. */
export interface Switchboard {
  endpoint: string;
  /** What lets us in there; `vet` looks at each connection before that is sent on it. */
  readonly pass: { headers: Record<string, string>; vet?: () => Promise<void> };
  /** Starts it where it does not run. */
  ensureRunning(): Promise<void>;
  /** What the user should know, and the client cannot be told. */
  log(line: string): void;
}
