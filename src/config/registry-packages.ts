import type { RegistryPackage } from './registry-schema.ts';

interface Parts {
  offered: RegistryPackage;
  runtimeArguments: string[];
  packageArguments: string[];
  /** The environment variables that the server needs. */
  variables: string[];
}

interface Arranged {
  args: string[];
  /** Moved out of the arguments, which other users can see in the process list. */
  env?: Record<string, string>;
}

interface Runtime {
  command: string;
  arrange(parts: Parts): Arranged;
}

export interface RunnablePackage {
  offered: RegistryPackage;
  runtime: Runtime;
}

export const runnableKinds =
  'a package of type npm (started by npx), pypi (uvx), oci (docker) or nuget with the runtime hint dnx';

/** Undefined if the package cannot be started here or does not use stdio. */
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

/** Turns `-e NAME=value` into an environment variable, so that the value is not in the process list. */
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

/** A terminal would add control characters to the messages. */
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
