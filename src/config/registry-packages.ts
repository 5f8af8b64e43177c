import type { RegistryPackage } from './registry-schema.ts';

interface Parts {
  offered: RegistryPackage;
  runtimeArguments: string[];
  packageArguments: string[];
  /** The names of the environment variables that the server gets. */
  variables: string[];
}

interface Arranged {
  args: string[];
  /** What stood among the arguments and is better kept out of the list of processes. */
  env?: Record<string, string>;
}

/** How a package of one kind is started. */
interface Runtime {
  command: string;
  arrange(parts: Parts): Arranged;
}

export interface RunnablePackage {
  offered: RegistryPackage;
  runtime: Runtime;
}

/** For messages. */
export const runnableKinds =
  'a package of type npm (started by npx), pypi (uvx), oci (docker) or nuget with the runtime hint dnx';

/** A package with the way to start it; undefined where there is none, or where it does not speak over stdio. */
export function packageOf(offered: RegistryPackage): RunnablePackage | undefined {
  const runtime = runtimeOf(offered.registryType, offered.runtimeHint);
  if (runtime === undefined || (offered.transport?.type ?? 'stdio') !== 'stdio') return undefined;
  return { offered, runtime };
}

export function runtimeOf(registryType: string, hint: string | undefined): Runtime | undefined {
  switch (registryType) {
    case 'npm':
      return hint === 'bunx' ? bunx : npx;
    case 'pypi':
      return hint === 'pipx' ? pipx : uvx;
    case 'oci':
      return container(hint === 'podman' ? 'podman' : 'docker');
    case 'nuget':
      return hint === 'dnx' ? dnx : undefined;
    default:
      return undefined;
  }
}

const npx: Runtime = {
  command: 'npx',
  arrange: ({ offered, runtimeArguments, packageArguments }) => ({
    args: [
      ...(runtimeArguments.some((word) => word === '-y' || word === '--yes') ? [] : ['-y']),
      ...runtimeArguments,
      versioned(offered, '@'),
      ...packageArguments,
    ],
  }),
};

const bunx = plain('bunx', '@');
const uvx = plain('uvx', '@');

const pipx: Runtime = {
  command: 'pipx',
  arrange: ({ offered, runtimeArguments, packageArguments }) => ({
    args: ['run', ...runtimeArguments, versioned(offered, '=='), ...packageArguments],
  }),
};

const dnx: Runtime = {
  command: 'dnx',
  arrange: ({ offered, runtimeArguments, packageArguments }) => ({
    args: [
      ...runtimeArguments,
      versioned(offered, '@'),
      ...without(['--yes'], runtimeArguments),
      ...(packageArguments.length === 0 ? [] : ['--', ...packageArguments]),
    ],
  }),
};

function plain(command: string, separator: string): Runtime {
  return {
    command,
    arrange: ({ offered, runtimeArguments, packageArguments }) => ({
      args: [...runtimeArguments, versioned(offered, separator), ...packageArguments],
    }),
  };
}

function container(command: string): Runtime {
  return {
    command,
    arrange: ({ offered, runtimeArguments, packageArguments, variables }) => {
      const { args, env } = variablesApart(runtimeArguments);
      const given = args.flatMap(withoutTerminal);
      const names = [...new Set([...Object.keys(env), ...variables])];
      return {
        args: [
          'run',
          ...without(['-i', '--rm'], given),
          ...(given[0] === 'run' ? given.slice(1) : given),
          ...names.flatMap((name) => ['-e', name]),
          image(offered),
          ...packageArguments,
        ],
        env,
      };
    },
  };
}

/** `-e NAME=value` becomes a variable of the process, so that its value stands in no list of processes. */
function variablesApart(words: string[]): { args: string[]; env: Record<string, string> } {
  const args: string[] = [];
  const env: Record<string, string> = {};
  for (let index = 0; index < words.length; index += 1) {
    const word = words[index]!;
    const [, name, value] = /^([^=]+)=(.*)$/s.exec(words[index + 1] ?? '') ?? [];
    if ((word === '-e' || word === '--env') && name !== undefined && value !== undefined) {
      env[name] = value;
      index += 1;
    } else {
      args.push(word);
    }
  }
  return { args, env };
}

/** A terminal would mix its own bytes into the messages, and there is none anyway. */
function withoutTerminal(word: string): string[] {
  if (word === '-t' || word === '--tty') return [];
  return word === '-it' || word === '-ti' ? ['-i'] : [word];
}

function image({ identifier, version }: RegistryPackage): string {
  const hasTag = identifier.includes('@') || identifier.slice(identifier.lastIndexOf('/') + 1).includes(':');
  return hasTag || version === undefined ? identifier : `${identifier}:${version}`;
}

function versioned({ identifier, version }: RegistryPackage, separator: string): string {
  return version === undefined || version === '' ? identifier : `${identifier}${separator}${version}`;
}

function without(words: string[], present: string[]): string[] {
  return words.filter((word) => !present.includes(word));
}
