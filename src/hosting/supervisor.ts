import { SwitchboardError } from '../errors.ts';
import type { Driver, Provider, Usage } from './driver.ts';
import type { Attachment, Condition, HostedServer } from './hosted.ts';
import type { HostedLog } from './log.ts';

export type { Attachment, Condition, HostedServer, HostedStatus, Memory } from './hosted.ts';

interface Drivers {
  get(provider: Provider): Promise<Driver> | Driver;
  choose(asked: Provider | undefined): Promise<Driver>;
}

export interface SupervisorEvents {
  /** The status or something else of its condition is another. */
  changed(id: string, condition: Condition): void;
  /** A crash, a crash loop, a server that does not respond. */
  warned(message: string): void;
  /** An instance is there anew: connect now. */
  running(id: string): void;
}

export interface SupervisorSettings {
  redact(project: string, text: string): string;
}

/** Makes the hosted servers run, and keeps them running. */
export class Supervisor {
  constructor(_drivers: Drivers, _settings: SupervisorSettings, _events: SupervisorEvents) {}
  apply(_servers: readonly HostedServer[]): void {}
  condition(_id: string): Condition | undefined {
    return undefined;
  }
  async usage(_id: string): Promise<Usage | undefined> {
    return undefined;
  }
  log(_id: string): HostedLog | undefined {
    return undefined;
  }
  async attach(_id: string): Promise<Attachment> {
    throw new SwitchboardError('server_unavailable', 'No hosted server is run yet.');
  }
  async restart(_id: string): Promise<void> {}
  responds(_id: string, _isResponsive: boolean): void {}
  async removeVolumes(_id: string): Promise<string[]> {
    return [];
  }
  async stop(): Promise<void> {}
  release(): void {}
}
