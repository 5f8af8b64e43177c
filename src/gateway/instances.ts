import { INSTANCES_KEY } from '../protocol/instances.ts';
import type { Scope } from './scope.ts';

/** What we tell Switchboards in front of us, as members of `_meta`: us, and all that are behind us. */
export function instancesMeta(scope: Scope, instance: string): Record<typeof INSTANCES_KEY, string[]> {
  const behind = scope.servers().flatMap(({ instances }) => instances);
  return { [INSTANCES_KEY]: [...new Set([instance, ...behind])] };
}
