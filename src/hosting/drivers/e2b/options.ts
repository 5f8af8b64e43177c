import { createHmac } from 'node:crypto';
import type { InstanceSpec } from '../../driver.ts';

export const labels = {
  owner: 'dev.switchboard.owner',
  id: 'dev.switchboard.id',
  name: 'dev.switchboard.name',
  project: 'dev.switchboard.project',
  revision: 'dev.switchboard.revision',
};

export function labelsOf(
  spec: InstanceSpec,
  { owner, apiKey = '' }: { owner: string; apiKey: string | undefined },
): Record<string, string> {
  return {
    [labels.owner]: owner,
    [labels.id]: spec.id,
    [labels.name]: spec.name,
    [labels.project]: spec.project,
    [labels.revision]: revisionOf(spec, apiKey),
  };
}

/** A keyed hash, because the spec has secrets and the whole E2B team can read the metadata. */
function revisionOf(spec: InstanceSpec, key: string): string {
  const { image, command, args, environment, hasStdio, port, hasNetwork } = spec;
  const variables = Object.entries(environment).toSorted(([a], [b]) => (a < b ? -1 : 1));
  const parts = [image, command, args, variables, hasStdio, port ?? null, hasNetwork];
  return createHmac('sha256', key).update(JSON.stringify(parts)).digest('hex');
}
