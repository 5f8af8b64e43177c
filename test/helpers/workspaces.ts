import type { NewWorkspace } from '../../src/store/workspaces.ts';

/** A persisted hosted server with overrides. */
export function newWorkspace(name: string, otherwise: Partial<NewWorkspace> = {}): NewWorkspace {
  return {
    name,
    enabled: true,
    resource_limits: { cpu: '0.5', memory: '512M', disk: '1G', pids: 128 },
    mcp_config: {
      image: 'mcp/time',
      command: null,
      args: [],
      stdio_bridge: true,
      restart_policy: 'always',
      environment: { TOKEN: `\${TOKEN}` },
      port: null,
      host_port: null,
      path: '/mcp',
      network: false,
      volumes: ['/data'],
      writable_root: false,
      provider: null,
    },
    ...otherwise,
  };
}
