import { isDeepStrictEqual } from 'node:util';
import { settingKeys } from '../config/choices.ts';
import type { Problem } from '../config/problems.ts';
import { fillKnown, importText, isEnabled, missingVariables, type ServerEntry } from '../config.ts';
import { asSwitchboardError, SwitchboardError } from '../errors.ts';
import type { Sender } from '../identity/principal.ts';
import type { LiveProject } from '../projects/live-project.ts';
import { defined } from './defined.ts';
import { checkStorable } from './http/body.ts';
import { invalidInput } from './http/check.ts';
import { type Route, route } from './http/route.ts';
import { importedFile, importQuery } from './inputs.ts';
import { checkNames, movedSecrets, namesOf, rowOf } from './server-changes.ts';
import { type NewServer, newServer } from './server-input.ts';
import { applyChange, needDatabase, type Services } from './services.ts';
import { type ImportResult, importResult } from './views.ts';

const MAX_SERVERS = 1_000;

export const importRoutes: Route[] = [
  route('POST', '/projects/:project/import', {
    operationId: 'importServers',
    summary:
      "Import servers from another program's configuration file, or from a server.json of the registry",
    action: 'operate',
    query: importQuery,
    body: importedFile,
    read: (text) => text,
    answers: { 201: importResult },
    handle: async ({ services, sender, project, query, body }) => ({
      status: 201 as const,
      body: await importServers(services, sender, project, body, query.replace),
    }),
  }),
];

/** `text` is JSON, possibly with comments. */
async function importServers(
  services: Services,
  sender: Sender,
  project: LiveProject,
  text: string,
  replace: boolean,
): Promise<ImportResult> {
  needDatabase(services);
  const { mcpServers, descriptions, notes } = read(text);
  const all = Object.entries(mcpServers).map(([name, entry]) =>
    importedServerOf(name, entry, Object.hasOwn(descriptions, name) ? descriptions[name] : undefined),
  );
  if (all.length === 0) {
    throw new SwitchboardError('invalid_input', `Nothing could be imported. ${notes.join(' ')}`.trim(), {
      data: { problems: notes.map((message) => ({ path: '', message })) },
    });
  }
  checkImported(all);
  const servers = replace ? all : all.filter((server) => !hasServer(project, server));
  const present = all.filter((server) => !servers.includes(server));
  if (servers.length > 0) {
    checkNames(project, servers.map(namesOf));
    await applyChange(services, sender, project, (store) =>
      store.servers.create(project.id, servers.map(rowOf), replace),
    );
  }
  return {
    imported: servers.map(({ name }) => name),
    notes: [
      ...notes,
      ...present.map(({ name }) => `${name}: it is in the project already`),
      ...movedNotes(project, servers),
      ...missingSecrets(project, servers, notes),
    ],
  };
}

/** Imported servers follow the same rules as those in requests. */
function checkImported(servers: readonly NewServer[]): void {
  if (servers.length > MAX_SERVERS) {
    throw invalidInput([{ path: [], message: `must not have more than ${MAX_SERVERS} servers in it` }]);
  }
  checkStorable(Object.fromEntries(servers.map((server) => [server.name, server])));
  const problems = servers.flatMap(problemsOf);
  if (problems.length > 0) throw invalidInput(problems);
}

function problemsOf({ settings, ...server }: NewServer): Problem[] {
  const { error } = newServer.safeParse({ ...server, ...settings });
  return error?.issues.map(({ path, message }) => ({ path: [server.name, ...path], message })) ?? [];
}

/** Compares after credentials of the imported server have become secrets. */
function hasServer(project: LiveProject, { name, transport, config, settings }: NewServer): boolean {
  const row = project.listed.find((server) => server.name === name)?.row;
  if (row === undefined || row.transport !== transport || row.product_id !== null) return false;
  const filled = (value: object): unknown =>
    JSON.parse(JSON.stringify(value), (_key, part: unknown) =>
      typeof part === 'string' ? fillKnown(part, (variable) => project.vault.value(variable)) : part,
    );
  return isDeepStrictEqual([filled(row.config), row.settings], [filled(config), filled(settings)]);
}

function movedNotes(project: LiveProject, servers: readonly NewServer[]): string[] {
  return servers.flatMap(({ name, config }) => {
    const written = project.listed.find((server) => server.name === name)?.row?.config;
    const { moved_secrets = [] } = movedSecrets(config, written);
    return moved_secrets.map((secret) => `${name}: a credential was moved into the secret ${secret}`);
  });
}

/** The secrets that are not set yet, unless another note names them. */
function missingSecrets(
  project: LiveProject,
  servers: readonly NewServer[],
  notes: readonly string[],
): string[] {
  const names = new Set(servers.map(({ name }) => name));
  return project.listed
    .filter(({ name }) => names.has(name))
    .flatMap(({ name, config }) =>
      missingVariables(config.transport, (variable) => project.vault.value(variable))
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

function importedServerOf(name: string, entry: ServerEntry, description: string | undefined): NewServer {
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
