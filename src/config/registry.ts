import { isObject } from '../json.ts';
import type { ServerEntry } from './entry.ts';

import { invalidConfiguration, type Problem, problemsOf } from './problems.ts';
import { RegistryInputs } from './registry-inputs.ts';
import { packageOf, type RunnablePackage, runnableKinds, runtimeOf } from './registry-packages.ts';
import { type RegistryPackage, type RegistryRemote, registrySchema } from './registry-schema.ts';

interface RegistryServer {
  /** The part of the registry name after the slash, as a valid server name. */
  name: string;
  description: string | undefined;
  entry: ServerEntry;
  /** Messages for the user. */
  notes: string[];
}

/** The `server.json` itself, or the one inside a response of the registry's API. */
export function findRegistryServer(document: Record<string, unknown>): object | undefined {
  const candidate = isObject(document.server) ? document.server : document;
  const isOurs = ['mcpServers', 'servers', 'mcp'].some((key) => key in candidate);
  if (isOurs || typeof candidate.name !== 'string') return undefined;
  const schema = typeof candidate.$schema === 'string' ? candidate.$schema : '';
  const isIt = Array.isArray(candidate.packages) || Array.isArray(candidate.remotes);
  return isIt || schema.endsWith('/server.schema.json') ? candidate : undefined;
}

/** Prefers a package over an address. Values that only the user knows become references; `word` names their kind. */
export function readRegistryServer(
  document: object,
  file: string,
  word: 'secret' | 'variable',
): RegistryServer {
  const parsed = registrySchema.safeParse(document);
  if (!parsed.success) throw invalidConfiguration(file, problemsOf(parsed.error, []));
  const { name: fullName, description, packages, remotes } = parsed.data;
  const name = serverName(fullName);
  const needs = new RegistryInputs(name, word);
  const runnable = packages.map(packageOf).find((candidate) => candidate !== undefined);
  const remote =
    remotes.find(({ type, url }) => type === 'streamable-http' && url !== undefined) ??
    remotes.find(({ type, url }) => type === 'sse' && url !== undefined);
  if (runnable === undefined && remote === undefined) {
    throw invalidConfiguration(file, [nothingUsable(packages, remotes)]);
  }
  const entry = runnable === undefined ? remoteEntry(remote!, needs) : packageEntry(runnable, needs);
  return { name, description, entry, notes: [...choiceNotes(packages, runnable, remote), ...needs.notes()] };
}

function serverName(fullName: string): string {
  const own = fullName.slice(fullName.lastIndexOf('/') + 1);
  const fit = own.replace(/[^A-Za-z0-9_-]+/g, '-').replace(/^-+|(?<!-)-+$/g, '');
  return fit === '' ? 'server' : fit.slice(0, 64);
}

function packageEntry({ offered, runtime }: RunnablePackage, needs: RegistryInputs): ServerEntry {
  const env: Record<string, string> = {};
  for (const variable of offered.environmentVariables) {
    const value = needs.variable(variable.name, variable);
    if (value !== undefined) env[variable.name] = value;
  }
  const { args, env: moved } = runtime.arrange({
    offered,
    runtimeArguments: needs.arguments(offered.runtimeArguments, true),
    packageArguments: needs.arguments(offered.packageArguments, false),
    variables: Object.keys(env),
  });
  const all = { ...moved, ...env };
  return { command: runtime.command, args, ...(Object.keys(all).length === 0 ? {} : { env: all }) };
}

function remoteEntry(
  { type, url = '', headers = [], variables }: RegistryRemote,
  needs: RegistryInputs,
): ServerEntry {
  const filled: Record<string, string> = {};
  for (const header of headers) {
    const value = needs.header(header.name, header);
    if (value !== undefined) filled[header.name] = value;
  }
  return {
    type: type === 'sse' ? 'sse' : 'http',
    url: needs.filled(url, variables),
    ...(Object.keys(filled).length === 0 ? {} : { headers: filled }),
  };
}

/** Says which of several options was chosen. */
function choiceNotes(
  packages: RegistryPackage[],
  runnable: RunnablePackage | undefined,
  remote: RegistryRemote | undefined,
): string[] {
  const others = [
    ...packages
      .filter((offered) => offered !== runnable?.offered)
      .map(({ registryType, identifier }) => `the ${registryType} package ${identifier}`),
    ...(runnable === undefined || remote === undefined ? [] : [`the address ${remote.url}`]),
  ];
  if (others.length === 0) return [];
  const taken =
    runnable === undefined
      ? `the address ${remote?.url}`
      : `the ${runnable.offered.registryType} package ${runnable.offered.identifier}`;
  return [`${taken} was taken; there is also ${others.join(', ')}`];
}

function nothingUsable(packages: RegistryPackage[], remotes: RegistryRemote[]): Problem {
  const found = [
    ...packages.map(({ registryType, transport: by, runtimeHint }) =>
      runtimeOf(registryType, runtimeHint) === undefined
        ? `a package of type ${registryType}`
        : `a package of type ${registryType} that is reached by ${by?.type}`,
    ),
    ...remotes.map(({ type }) => `a remote of type ${type}`),
  ];
  const possible = `${runnableKinds} that speaks over stdio, or a remote of type streamable-http or sse`;
  const message =
    found.length === 0
      ? `has neither packages nor remotes: it needs ${possible}`
      : `has nothing that can be used here, only ${found.join(', ')}: it needs ${possible}`;
  return { path: [], message };
}
