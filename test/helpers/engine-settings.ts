import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** The traces of a test engine outside of its folder. */
export interface EngineSettings {
  /** The parent cgroup of all its containers. */
  group: string;
  networks: string[];
}

interface Choices {
  folder: string;
  runsc: string;
  liveRestore: boolean;
}

const mostEngines = 64;

export function settingsPath(folder: string): string {
  return join(folder, 'daemon.json');
}

function retiredPath(folder: string): string {
  return join(folder, 'retired.json');
}

export function socketPathIn(folder: string): string {
  return join(folder, 'docker.sock');
}

/** Each engine has its own folders, bridge, addresses and cgroup, and no firewall rules, so that none affects another. */
export function writeSettings({ folder, runsc, liveRestore }: Choices): void {
  const place = claimPlace();
  const settings = {
    hosts: [`unix://${socketPathIn(folder)}`],
    'data-root': join(folder, 'data'),
    'exec-root': join(folder, 'exec'),
    pidfile: join(folder, 'docker.pid'),
    bridge: bridgeOf(place),
    'default-address-pools': [{ base: poolOf(place), size: 28 }],
    iptables: false,
    'ip-forward': false,
    'ip-masq': false,
    'cgroup-parent': `/${bridgeOf(place)}`,
    'exec-opts': ['native.cgroupdriver=cgroupfs'],
    'live-restore': liveRestore,
    // Tests have nothing to save that takes longer.
    'shutdown-timeout': 2,
    // Virtual machines seldom have KVM, and gVisor's network stack does not start on every kernel.
    runtimes: { runsc: { path: runsc, runtimeArgs: ['--platform=ptrace', '--network=host'] } },
  };
  try {
    writeFileSync(settingsPath(folder), JSON.stringify(settings, undefined, 2));
  } catch (error) {
    // Without settings, the cleanup would not find it.
    ip('link', 'delete', settings.bridge);
    throw error;
  }
}

/** A later start does not find the settings, but the cleanup does. */
export function retireSettings(folder: string): void {
  if (existsSync(settingsPath(folder))) renameSync(settingsPath(folder), retiredPath(folder));
}

/** Undefined if no engine was created. */
export function readSettings(folder: string): EngineSettings | undefined {
  const path = [settingsPath(folder), retiredPath(folder)].find((path) => existsSync(path));
  if (path === undefined) return undefined;
  const { bridge } = JSON.parse(readFileSync(path, 'utf8')) as { bridge: string };
  const place = Number(bridge.replace(/\D+/, ''));
  return { group: bridge, networks: [subnetOf(place), poolOf(place)] };
}

/** Bridge names are unique, so creating one claims the place. */
function claimPlace(): number {
  for (let place = 0; place < mostEngines; place++) {
    if (existsSync(`/sys/class/net/${bridgeOf(place)}`)) continue;
    try {
      ip('link', 'add', bridgeOf(place), 'type', 'bridge');
    } catch (error) {
      if (String((error as { stderr?: unknown }).stderr).includes('File exists')) continue;
      throw error;
    }
    ip('address', 'add', subnetOf(place).replace('.0/', '.1/'), 'dev', bridgeOf(place));
    ip('link', 'set', bridgeOf(place), 'up');
    return place;
  }
  throw new Error(`There are ${mostEngines} bridges of test engines already: see ip link show type bridge`);
}

function ip(...args: string[]): void {
  execFileSync('ip', args, { stdio: ['ignore', 'ignore', 'pipe'] });
}

function bridgeOf(place: number): string {
  return `swbtest${place}`;
}

// The address range reserved for network benchmarks.
function subnetOf(place: number): string {
  return `198.18.${place}.0/24`;
}

function poolOf(place: number): string {
  return `198.19.${place * 4}.0/22`;
}
