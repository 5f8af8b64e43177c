import { SwitchboardError } from '../errors.ts';
import { asObject } from '../json.ts';

/**
 * This key of `_meta` lists the Switchboards on the way to what a Switchboard offers: itself, and those behind it. It
 * is part of its self-description, and of lists if the request has the key too, since the chain may have grown. Only
 * responses count, so that no client can make a server look like a loop.
 */
export const INSTANCES_KEY = 'dev.switchboard/instances';

/** No real chain is longer, so this is a loop. */
const MAX_INSTANCES = 256;

/** Requests the instances in a list response. */
export const asksInstances = { [INSTANCES_KEY]: true };

/** The Switchboards in a result. Throws if we are among them, or if there are too many. */
export function instancesIn(result: Record<string, unknown>, self: string | undefined): readonly string[] {
  const named = asObject(result._meta)[INSTANCES_KEY];
  if (!Array.isArray(named)) return [];
  if (self !== undefined && named.includes(self)) {
    throw new SwitchboardError(
      'server_loop',
      'it leads back to this Switchboard: remove it here, or remove this Switchboard from the servers of the one behind it',
    );
  }
  if (named.length > MAX_INSTANCES) {
    const why = `it leads through more than ${MAX_INSTANCES} Switchboards: shorten the chain`;
    throw new SwitchboardError('server_loop', why);
  }
  return named.filter((id) => typeof id === 'string' && id.length <= LONGEST_ID);
}

/** Ids are UUIDs. */
const LONGEST_ID = 64;
