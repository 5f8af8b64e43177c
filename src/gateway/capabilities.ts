import { asObject } from '../protocol/objects.ts';

/** What a client must have declared before it can be asked, by what it is asked. */
const needed: Record<string, string> = {
  'sampling/createMessage': 'sampling',
  'elicitation/create': 'elicitation',
  'roots/list': 'roots',
};

/** Whether servers may ask clients by this method at all. */
export function askedByName(method: string): boolean {
  return Object.hasOwn(needed, method);
}

/** What the client would have to be able to do, and cannot; undefined where it can be asked. */
export function lackedCapability(
  capabilities: Record<string, unknown>,
  method: string,
  params: unknown,
): string | undefined {
  const capability = needed[method];
  if (!askedByName(method) || capability === undefined) return method;
  const declared = capabilities[capability];
  if (declared === undefined) return capability;
  const { mode } = asObject(params);
  // A client that says nothing of modes means forms.
  const lacksAddresses =
    method === 'elicitation/create' && mode === 'url' && asObject(declared).url === undefined;
  return lacksAddresses ? 'elicitation by URL' : undefined;
}
