import type { ServerTest } from '../../api/views.ts';
import type { ServerConfig } from '../../config.ts';
import type { LiveProject } from '../../projects/live-project.ts';
import { Server, type ServerEvents } from '../../upstreams/server.ts';
import type { Parts } from './context.ts';

const noEvents: ServerEvents = {
  ...{ stateChanged() {}, offerChanged() {}, connected() {}, disconnected() {} },
  ...{ notificationReceived() {}, requestReceived() {}, logged() {}, callsFailed() {} },
};

/** Connects to a server apart from the one that runs, if it does, and asks what it offers. */
export async function tryOut(
  live: LiveProject,
  config: ServerConfig,
  { servers: settings, trials }: Pick<Parts, 'servers' | 'trials'>,
): Promise<ServerTest> {
  const startedAt = performance.now();
  const server = new Server(
    { ...config, replicas: 1, isolation: 'shared' },
    { ...settings, ...live.access, project: live },
    noEvents,
    undefined,
  );
  trials.add(server);
  try {
    await server.discover();
    const { condition, offer, facts } = server;
    const ok = condition.state === 'ready';
    return {
      ok,
      duration_ms: Math.round(performance.now() - startedAt),
      error: ok ? null : (condition.reason?.message ?? `The server is ${condition.state}.`),
      tools: offer?.tools.length ?? null,
      resources: offer?.resources.length ?? null,
      prompts: offer?.prompts.length ?? null,
      server_info: facts?.serverInfo ?? null,
    };
  } finally {
    trials.delete(server);
    await server.stop();
  }
}
