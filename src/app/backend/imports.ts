import { isDeepStrictEqual } from 'node:util';
import type { Backend } from '../../api/backend.ts';
import { defined } from '../../api/defined.ts';
import type { NewServer } from '../../api/server-input.ts';
import { settingKeys } from '../../config/choices.ts';
import { fillKnown, importText, isEnabled, missingVariables, type ServerEntry } from '../../config.ts';
import { asSwitchboardError, SwitchboardError } from '../../errors.ts';
import type { LiveProject } from '../../projects/live-project.ts';
import { change, needStored, type Parts } from './context.ts';
import { movedSecrets } from './moved-secrets.ts';
import { checkNames } from './name-clashes.ts';
import { namesOf, stored } from './servers.ts';

export function importsBackend(parts: Parts): Backend['imports'] {
  return {
    async import(project, text, replace) {
      const live = parts.projects.get(project);
      needStored(parts);
      const { mcpServers, descriptions, notes } = read(text);
      const all = Object.entries(mcpServers).map(([name, entry]) =>
        newServerOf(name, entry, Object.hasOwn(descriptions, name) ? descriptions[name] : undefined),
      );
      if (all.length === 0) {
        throw new SwitchboardError('invalid_input', `Nothing could be imported. ${notes.join(' ')}`.trim(), {
          data: { problems: notes.map((message) => ({ path: '', message })) },
        });
      }
      // With it come the schemas of all requests, which nobody else needs here.
      const { checkImported } = await import('../../api/imported-servers.ts');
      checkImported(all);
      const servers = replace ? all : all.filter((server) => !isThere(live, server));
      const known = all.filter((server) => !servers.includes(server));
      if (servers.length > 0) {
        checkNames(live, servers.map(namesOf));
        await change(parts, live, (store) => store.servers.create(live.id, servers.map(stored), replace));
      }
      return {
        imported: servers.map(({ name }) => name),
        notes: [
          ...notes,
          ...known.map(({ name }) => `${name}: it is in the project already`),
          ...movedNotes(live, servers),
          ...missingSecrets(live, servers, notes),
        ],
      };
    },
  };
}

/** Whether the project has this very server. Credentials of one that was imported have become secrets. */
function isThere(live: LiveProject, { name, transport, config, settings }: NewServer): boolean {
  const row = live.listed.find((server) => server.name === name)?.row;
  if (row === undefined || row.transport !== transport || row.product_id !== null) return false;
  const filled = (value: object): unknown =>
    JSON.parse(JSON.stringify(value), (_key, part: unknown) =>
      typeof part === 'string' ? fillKnown(part, (variable) => live.vault.value(variable)) : part,
    );
  return isDeepStrictEqual([filled(row.config), row.settings], [filled(config), filled(settings)]);
}

function movedNotes(live: LiveProject, servers: readonly NewServer[]): string[] {
  return servers.flatMap(({ name, config }) => {
    const written = live.listed.find((server) => server.name === name)?.row?.config;
    const { moved_secrets = [] } = movedSecrets(config, written);
    return moved_secrets.map((secret) => `${name}: a credential was moved into the secret ${secret}`);
  });
}

/** What still has to be set, where no other note has said so. */
function missingSecrets(
  live: LiveProject,
  servers: readonly NewServer[],
  notes: readonly string[],
): string[] {
  const names = new Set(servers.map(({ name }) => name));
  return live.listed
    .filter(({ name }) => names.has(name))
    .flatMap(({ name, config }) =>
      missingVariables(config.transport, (variable) => live.vault.value(variable))
        .filter((variable) => !notes.some((note) => note.includes(variable)))
        .map((variable) => `${name}: set the secret ${variable}`),
    );
}

function read(text: string): ReturnType<typeof importText> {
  try {
    return importText(text, 'the request', { target: 'project', folder: undefined });
  } catch (error) {
    const { message, data } = asSwitchboardError(error);
    throw new SwitchboardError('invalid_input', message, { data: { problems: data.problems ?? [] } });
  }
}

function newServerOf(name: string, entry: ServerEntry, description: string | undefined): NewServer {
  const { command, args, env, cwd, url, headers } = entry;
  const config = url === undefined ? { command: command ?? '', args, env, cwd } : { url, headers };
  return {
    name,
    description: description ?? null,
    transport: url === undefined ? 'stdio' : entry.type === 'sse' ? 'sse' : 'http',
    config: defined(config) as NewServer['config'],
    settings: defined(
      Object.fromEntries(
        Object.entries(settingKeys).map(([key, column]) => [column, entry[key as keyof typeof settingKeys]]),
      ),
    ),
    enabled: isEnabled(entry),
  };
}
