import type { SandboxInfo } from 'e2b';
import type { Instance, InstanceEvents, InstanceSpec, Survivors } from '../../driver.ts';
import { instanceOf, LEASE_MS } from './instance.ts';
import { labels, labelsOf } from './options.ts';
import { SandboxProcess } from './sandbox-process.ts';
import { type Account, connect, explain, isNotFound } from './sdk.ts';

export class E2bSurvivors implements Survivors {
  private readonly options: Account & { owner: string };

  constructor(options: Account & { owner: string }) {
    this.options = options;
  }

  async adopt(spec: InstanceSpec, events: InstanceEvents): Promise<Instance | undefined> {
    const { [labels.id]: id, [labels.revision]: revision } = labelsOf(spec, this.options);
    const found = (await this.list()).filter(({ metadata }) => metadata[labels.id] === id);
    let adopted: Instance | undefined;
    for (const info of found) {
      if (adopted !== undefined) break;
      if (info.state === 'running' && info.metadata[labels.revision] === revision)
        adopted = await this.connect(info, spec, events);
    }
    await this.remove(found.filter(({ sandboxId }) => sandboxId !== adopted?.id));
    return adopted;
  }

  async reap(ids: readonly string[]): Promise<string[]> {
    return this.remove(
      (await this.list()).filter(({ metadata }) => !ids.includes(metadata[labels.id] ?? '')),
    );
  }

  /** Undefined if it has ended meanwhile. */
  private async connect(
    info: SandboxInfo,
    spec: InstanceSpec,
    events: InstanceEvents,
  ): Promise<Instance | undefined> {
    const { sdk, connection } = await connect(this.options);
    try {
      const sandbox = await sdk.Sandbox.connect(info.sandboxId, { ...connection, timeoutMs: LEASE_MS });
      const server = await SandboxProcess.connect(sandbox);
      return await instanceOf(sandbox, server, { spec, events, startedAt: info.startedAt });
    } catch (error) {
      if (isNotFound(error)) return undefined;
      throw explain(error, `adopt the sandbox ${info.sandboxId}`);
    }
  }

  private async remove(sandboxes: SandboxInfo[]): Promise<string[]> {
    const { sdk, connection } = await connect(this.options);
    const ids = sandboxes.map(({ sandboxId }) => sandboxId);
    try {
      await Promise.all(ids.map((id) => sdk.Sandbox.kill(id, connection)));
    } catch (error) {
      throw explain(error, 'remove unused sandboxes');
    }
    return ids;
  }

  private async list(): Promise<SandboxInfo[]> {
    const { sdk, connection } = await connect(this.options);
    const { owner } = this.options;
    const pages = sdk.Sandbox.list({
      ...connection,
      query: { metadata: { [labels.owner]: owner }, state: ['running', 'paused'] },
    });
    const found: SandboxInfo[] = [];
    try {
      while (pages.hasNext) found.push(...(await pages.nextItems()));
    } catch (error) {
      throw explain(error, 'list the sandboxes');
    }
    return found.filter(({ metadata }) => metadata[labels.owner] === owner);
  }
}
