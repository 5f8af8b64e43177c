import { describe, expect, it } from 'vitest';
import { Engine } from './engine.ts';
import { chooseRuntime } from './runtimes.ts';

const engine = new Engine('/var/run/docker.sock');
const runc = { path: 'runc' };

describe('the runtime of a provider', () => {
  it('is found for Firecracker, in all its forms', () => {
    const forms = [
      { 'kata-fc': { path: '/opt/kata/bin/containerd-shim-kata-v2' } },
      { fast: { runtimeType: 'io.containerd.kata-fc.v2' } },
      { small: { path: '/usr/bin/containerd-shim-kata-fc-v2' } },
      { 'aws.firecracker': { runtimeType: 'aws.firecracker' } },
    ];
    for (const form of forms) {
      expect(choose('firecracker', undefined, { runc, ...form })).toEqual({ runtime: Object.keys(form)[0] });
    }
  });

  it('is not another one of Kata Containers', () => {
    const others = {
      runc,
      kata: {},
      'kata-qemu': { runtimeType: 'io.containerd.kata-qemu.v2' },
      'kata-clh': {},
    };
    expect(choose('firecracker', undefined, others)).toEqual({
      problem: expect.stringContaining('such as "kata-fc"'),
    });
  });

  it('is the configured one, if any', () => {
    expect(choose('firecracker', 'mine', { runc, mine: {}, 'kata-fc': {} })).toEqual({ runtime: 'mine' });
    expect(choose('firecracker', 'mine', { runc, 'kata-fc': {} })).toEqual({
      problem: expect.stringContaining('has no runtime "mine"'),
    });
    expect(choose('gvisor', 'runsc', { runc, runsc: { path: '/usr/bin/runsc' } })).toEqual({
      runtime: 'runsc',
    });
    expect(choose('docker', undefined, { runc })).toEqual({ runtime: undefined });
  });

  it('never lacks a sandbox, whatever its name', () => {
    const disguised = [
      { runsc: { path: '/usr/bin/runc' } },
      { runsc: { path: 'crun' } },
      { runsc: { runtimeType: 'io.containerd.runc.v2' } },
    ];
    for (const runtimes of disguised) {
      expect(choose('gvisor', 'runsc', runtimes)).toEqual({
        problem: expect.stringContaining('does not isolate more than plain containers'),
      });
    }
  });
});

function choose(
  provider: 'gvisor' | 'firecracker' | 'docker',
  configured: string | undefined,
  Runtimes: Record<string, { path?: string; runtimeType?: string }>,
) {
  return chooseRuntime(provider, configured, engine, { OSType: 'linux', Runtimes });
}
