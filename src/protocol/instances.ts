import { SwitchboardError } from '../errors.ts';
import { asObject } from '../json.ts';

/**
 * Under this key of `_meta` a Switchboard tells which Switchboards there are on the way to what it offers: itself, and those
 * behind it. It stands in what a Switchboard says of itself, and in lists where the request has the key as well: more may have
 * come behind it since. Only answers are believed, so no client can make a server look like a loop.
 */
export const INSTANCES_KEY = 'dev.switchboard/instances';

/** More than anybody has: whatever names more is no chain of Switchboards that ends. */
const MAX_INSTANCES = 256;

/** The members of `_meta` that ask for the instances behind a list. */
export const asksInstances = { [INSTANCES_KEY]: true };

/** The Switchboards that an answer names. Fails where we are among them, or where they are too many. */
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
