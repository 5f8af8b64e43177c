/** The variants that are compared, and their names. */
import type { Era } from './eras.ts';

/** Switchboard, with clients of one era in front of it and a server of one era behind it. */
interface Arrangement {
  client: Era;
  server: Era;
  transport: 'HTTP' | 'stdio';
  flags: string[];
}

/** The combinations of eras for which a gateway does different work. */
const acrossEras = {
  'switchboard-http': arranged('legacy', 'legacy', 'HTTP'),
  'switchboard-stdio': arranged('legacy', 'legacy', 'stdio'),
  'switchboard-modern-http': arranged('modern', 'modern', 'HTTP'),
  'switchboard-modern-stdio': arranged('modern', 'modern', 'stdio'),
  'switchboard-modern-to-legacy': arranged('modern', 'legacy', 'stdio'),
  'switchboard-legacy-to-modern': arranged('legacy', 'modern', 'HTTP'),
};

const arrangements = {
  ...acrossEras,
  // With authentication: each request carries a key.
  'switchboard-key': arranged('legacy', 'legacy', 'stdio', '--auth'),
  // Without call records.
  'switchboard-no-database': arranged('legacy', 'legacy', 'stdio', '--no-database'),
};

type EraName = keyof typeof acrossEras;
type SwitchboardName = keyof typeof arrangements;
/** The same arrangement with an older build of Switchboard. */
type BeforeName = `before-${EraName}`;
/** Switchboard, of either build. */
export type OwnName = SwitchboardName | BeforeName;
export type DirectName = 'direct' | 'direct-modern';
export type PeerName = (typeof peerNames)[number];
/** All but those of the older build. */
export type CurrentName = DirectName | SwitchboardName | PeerName;
export type VariantName = CurrentName | BeforeName;

export const eraNames = Object.keys(acrossEras) as EraName[];
const peerNames = ['supergateway', 'mcp-proxy', 'mcp-hub'] as const;

/** Variants of the legacy era, which are compared with other gateways. */
export const callNames = [
  'direct',
  'switchboard-http',
  'switchboard-stdio',
  'switchboard-key',
  'switchboard-no-database',
  ...peerNames,
] as const satisfies CurrentName[];

/** All variants in the order of their turns. An older build comes right after its counterpart. */
export const variantNames: readonly VariantName[] = [
  'direct',
  'direct-modern',
  ...eraNames.flatMap((name) => [
    name,
    beforeOf(name),
    ...(name === 'switchboard-stdio' ? (['switchboard-key'] as const) : []),
  ]),
  'switchboard-no-database',
  ...peerNames,
];

export function beforeOf(name: EraName): BeforeName {
  return `before-${name}`;
}

export function isBefore(name: VariantName): name is BeforeName {
  return name.startsWith('before-');
}

export function currentOf(name: VariantName): CurrentName {
  return (isBefore(name) ? name.slice('before-'.length) : name) as CurrentName;
}

export function isPeer(name: VariantName): name is PeerName {
  return (peerNames as readonly VariantName[]).includes(name);
}

export function isOwn(name: VariantName): name is OwnName {
  return Object.hasOwn(arrangements, currentOf(name));
}

export function arrangementOf(name: OwnName): Arrangement {
  return arrangements[currentOf(name) as SwitchboardName];
}

export function concernsModern(name: OwnName): boolean {
  const { client, server } = arrangementOf(name);
  return client === 'modern' || server === 'modern';
}

/** The server of this era, called without a gateway. */
export function directOf(era: Era): DirectName {
  return era === 'legacy' ? 'direct' : 'direct-modern';
}

function arranged(
  client: Era,
  server: Era,
  transport: Arrangement['transport'],
  ...flags: string[]
): Arrangement {
  return { client, server, transport, flags };
}
