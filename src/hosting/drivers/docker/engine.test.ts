import { describe, expect, it } from 'vitest';
import { readAddress } from './engine.ts';

describe('the address of an engine', () => {
  it.for([
    ['/var/run/docker.sock', { socketPath: '/var/run/docker.sock' }],
    ['unix:///run/user/1000/docker.sock', { socketPath: '/run/user/1000/docker.sock' }],
    ['tcp://127.0.0.1:4000', { host: '127.0.0.1', port: 4000 }],
    ['tcp://localhost', { host: 'localhost', port: 2375 }],
    ['tcp://[::1]:4000', { host: '::1', port: 4000 }],
  ] as const)('is read from %s', ([text, connect]) => {
    expect(readAddress(text)).toMatchObject({ connect });
  });

  it.for([
    'tcp://10.0.0.1:2375',
    'tcp://127.0.0.1.example.com:2375',
    'ssh://somebody:password@host',
    'http://127.0.0.1',
    'tcp://',
  ])('is rejected for %s, with the variable to set', (text) => {
    const address = readAddress(text) as { problem: string };
    expect(address.problem).toContain('DOCKER_HOST');
    expect(JSON.stringify(address)).not.toContain('password');
  });
});
