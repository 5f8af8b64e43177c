import type { Settings } from '../config.ts';
import type { ReplicaSettings } from './replica.ts';

type Limits = Pick<
  ReplicaSettings,
  'connectTimeoutMs' | 'maxMessageBytes' | 'queueLimit' | 'recovery' | 'ejectAfter' | 'ejectMs' | 'lists'
>;

/** What the settings say of servers, wherever they run. */
export function limitsOf(settings: Settings): Limits {
  const { connectTimeoutMs, maxMessageBytes, queueLimit, ejectAfter, ejectMs } = settings;
  const { backoffFirstMs: firstMs, backoffMaxMs: maxMs, breakerFailures, breakerOpenMs } = settings;
  return {
    ...{ connectTimeoutMs, maxMessageBytes, queueLimit, ejectAfter, ejectMs },
    lists: { listItems: settings.maxListItems, listBytes: settings.maxListBytes },
    recovery: { backoff: { firstMs, maxMs }, breakerFailures, breakerOpenMs },
  };
}
