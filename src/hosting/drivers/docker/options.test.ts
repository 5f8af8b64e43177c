import { describe, expect, it } from 'vitest';
import type { InstanceSpec } from '../../driver.ts';
import { containerLabels, containerName, containerOptions } from './options.ts';

const installation = { provider: 'docker', runtime: undefined, owner: 'here' } as const;

const spec: InstanceSpec = {
  id: 'id',
  name: 'notes',
  project: 'default',
  image: 'mcp/notes',
  command: undefined,
  args: [],
  environment: { B: 'two', A: 'one' },
  limits: { cpus: 0.5, memoryBytes: 512 * 1024 * 1024, diskBytes: 1024 * 1024 * 1024, pids: 128 },
  hasStdio: true,
  port: undefined,
  hasNetwork: false,
  volumes: [],
  hasWritableRoot: false,
};

describe('the options of a container', () => {
  it('keep the command of the image, unless another is given', () => {
    expect(optionsOf({})).not.toHaveProperty('Entrypoint');
    expect(optionsOf({})).not.toHaveProperty('Cmd');
    expect(optionsOf({ args: ['--all'] })).toMatchObject({ Cmd: ['--all'] });
    expect(optionsOf({ args: ['--all'] })).not.toHaveProperty('Entrypoint');
    expect(optionsOf({ command: 'run' })).toMatchObject({ Entrypoint: ['run'], Cmd: [] });
  });

  it('open no stdin for a server with a port, and pass the port to it', () => {
    const options = optionsOf({ hasStdio: false, port: 3000 });
    expect(options).toMatchObject({
      OpenStdin: false,
      AttachStdin: false,
      Env: ['A=one', 'B=two', 'PORT=3000'],
    });
    expect(options.HostConfig).toMatchObject({
      NetworkMode: 'bridge',
      PortBindings: { '3000/tcp': [{ HostIp: '127.0.0.1' }] },
    });
  });

  it('add a network on request, without a port', () => {
    expect(optionsOf({}).HostConfig.NetworkMode).toBe('none');
    const { HostConfig } = optionsOf({ hasNetwork: true });
    expect(HostConfig.NetworkMode).toBe('bridge');
    expect(HostConfig).not.toHaveProperty('PortBindings');
  });

  it('mount nothing twice', () => {
    const { HostConfig } = optionsOf({ volumes: ['/tmp/', 'data'] });
    expect(HostConfig.Mounts.map(({ Target }) => Target)).toEqual(['/data', '/tmp']);
    expect(HostConfig).not.toHaveProperty('Tmpfs');
    expect(optionsOf({}).HostConfig).toHaveProperty('Tmpfs');
  });

  it('name volumes by the server and the path, not by its id', () => {
    const nameOf = (more: Partial<InstanceSpec>) =>
      optionsOf({ volumes: ['/data'], ...more }).HostConfig.Mounts[0]!.Source;
    expect(nameOf({ id: 'another' })).toBe(nameOf({}));
    const names = [{}, { name: 'other' }, { project: 'other' }, { volumes: ['/other'] }].map(nameOf);
    expect(new Set(names).size).toBe(4);
  });

  it('have the same revision only if nothing differs', () => {
    const usual = revisionOf({});
    expect(revisionOf({ environment: { A: 'one', B: 'two' } })).toBe(usual);
    const changes: Partial<InstanceSpec>[] = [
      { image: 'mcp/other' },
      { command: 'run' },
      { args: ['--all'] },
      { environment: { A: 'one', B: 'three' } },
      { limits: { ...spec.limits, cpus: 1 } },
      { limits: { ...spec.limits, memoryBytes: 1 } },
      { limits: { ...spec.limits, diskBytes: 1 } },
      { limits: { ...spec.limits, pids: 1 } },
      { hasStdio: false },
      { port: 1 },
      { hasNetwork: true },
      { volumes: ['/data'] },
      { hasWritableRoot: true },
    ];
    expect(new Set([usual, ...changes.map(revisionOf)]).size).toBe(changes.length + 1);
  });

  it('contain no secret in what is shown', () => {
    const { Env, ...shown } = optionsOf({ environment: { KEY: 'very secret' } });
    expect(Env).toEqual(['KEY=very secret']);
    expect(JSON.stringify(shown)).not.toContain('secret');
  });

  it('include a name that every engine accepts', () => {
    expect(containerName({ ...spec, project: 'Größe & Co', name: 'x'.repeat(200) })).toMatch(
      /^switchboard-Gr-e-Co-x{60,}-[0-9a-f]{8}$/,
    );
  });
});

function optionsOf(more: Partial<InstanceSpec>) {
  const changed = { ...spec, ...more };
  return containerOptions(changed, changed.image!, installation);
}

function revisionOf(more: Partial<InstanceSpec>): string | undefined {
  return optionsOf(more).Labels[containerLabels.revision];
}
