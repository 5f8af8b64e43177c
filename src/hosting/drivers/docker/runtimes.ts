import type { Provider } from '../../../config/choices.ts';
import type { Engine } from './engine.ts';

interface Runtime {
  path?: string;
  runtimeType?: string;
}

export interface EngineInfo {
  OSType: string;
  Runtimes: Record<string, Runtime> | null;
}

/** These runtimes share the kernel of the machine. */
const WITHOUT_SANDBOX = /^(runc|crun|youki|io\.containerd\.(runc|crun)\..*)$/;

export type Choice = { runtime: string | undefined } | { problem: string };

export function chooseRuntime(
  provider: Provider,
  configured: string | undefined,
  engine: Engine,
  { OSType, Runtimes }: EngineInfo,
): Choice {
  const called = `The Docker engine at ${engine.name}`;
  if (OSType !== 'linux') return { problem: `${called} does not run Linux containers.` };
  if (provider === 'docker') return { runtime: configured };
  const runtimes = Runtimes ?? {};
  const name = configured ?? Object.keys(runtimes).find((each) => isFirecracker(each, runtimes[each]!));
  const runtime = name === undefined ? undefined : runtimes[name];
  if (name === undefined || runtime === undefined) {
    return { problem: `${called} ${missing(name)}. ${howToInstall(provider)}` };
  }
  if (WITHOUT_SANDBOX.test(runtime.runtimeType ?? baseName(runtime.path ?? name))) {
    return {
      problem: `The runtime "${name}" of ${called} does not isolate more than plain containers, so it cannot be the provider "${provider}". ${howToInstall(provider)}`,
    };
  }
  return { runtime: name };
}

/** Excludes Kata Containers with another hypervisor. */
function isFirecracker(name: string, { path = '', runtimeType = '' }: Runtime): boolean {
  return [name, baseName(path), runtimeType].some((text) => namesFirecracker(text));
}

function baseName(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1);
}

function missing(name: string | undefined): string {
  return name === undefined
    ? 'has no runtime for Kata Containers with Firecracker, such as "kata-fc"'
    : `has no runtime "${name}"`;
}

function howToInstall(provider: Provider): string {
  return provider === 'gvisor'
    ? 'Install gVisor (https://gvisor.dev/docs/user_guide/install/), run `sudo runsc install`, then restart Docker: sudo systemctl restart docker.'
    : 'Install Kata Containers with Firecracker (https://github.com/kata-containers/kata-containers), add its runtime to /etc/docker/daemon.json, restart Docker (sudo systemctl restart docker), and set `hosting.runtimes.firecracker` to its name if that is not "kata-fc".';
}

/** Kata's runtimes are named after the hypervisor. */
function namesFirecracker(text: string): boolean {
  return /firecracker/i.test(text) || (/kata/i.test(text) && /\bfc\b/i.test(text));
}
