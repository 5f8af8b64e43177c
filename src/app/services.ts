import type { Services } from '../api/services.ts';
import type { Chats } from '../chats/chats.ts';
import type { Hosting } from '../projects/hosting/hosting.ts';
import type { AuthenticatedSettings } from './authentication.ts';
import type { Identity } from './identity.ts';
import { noDatabase, type OpenDatabase, type Persistence } from './persistence.ts';

interface Parts extends Pick<Services, 'projects' | 'events' | 'serverSettings'> {
  version: string;
  configPath: string;
  settings: AuthenticatedSettings;
  identity: Identity;
  openDatabase: OpenDatabase | undefined;
  persistence: Persistence | undefined;
  hosting: Hosting | undefined;
  chats: Chats | undefined;
  sessionCount(): number;
}

/** What the API works with. */
export function servicesOf(parts: Parts): Services {
  const { projects, events, serverSettings, persistence, hosting, chats, openDatabase } = parts;
  const { control, policy, limiter, refresher: policyRefresher } = parts.identity;
  const { denials } = parts.identity;
  const hasDatabase = persistence && hosting && chats && policyRefresher;
  return {
    ...{ projects, events, serverSettings, testedServers: new Set() },
    identity: { control, policy, limiter, isOn: parts.settings.auth },
    database: hasDatabase && { ...persistence, hosting, chats, policyRefresher },
    status: () => ({
      ...{ version: parts.version, config: parts.configPath, public_url: parts.settings.publicUrl ?? null },
      database: openDatabase?.status() ?? noDatabase,
      records: { queued: persistence?.recorder.queued ?? 0, dropped: persistence?.recorder.dropped ?? 0 },
      audit: { queued: denials?.queued ?? 0, merged: denials?.merged ?? 0 },
      sessions: parts.sessionCount(),
    }),
  };
}
