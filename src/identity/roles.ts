/** From the least to the most powerful: each role may do what those before it may. */
export const roles = ['viewer', 'caller', 'operator', 'owner', 'admin'] as const;

export type Role = (typeof roles)[number];

interface ActionKind {
  /** The least role that may do it. */
  role: Role;
  /** Completes "may …". */
  meaning: string;
}

/** Everything that a principal can be allowed to do in a project. The documentation shows the same table. */
export const actions = {
  see: may(
    'viewer',
    'see the project, the state of its servers, and the lists of tools, resources and prompts',
  ),
  call: may(
    'caller',
    'call tools, read resources, get prompts, complete arguments, and subscribe to resources',
  ),
  chat: may('caller', 'chat with an agent that uses the tools of the project, and see their own chats'),
  observe: may('operator', 'see call records, and the logs of servers'),
  operate: may(
    'operator',
    'add, change, test and remove servers, switch tools, install products, and host images',
  ),
  secrets: may('operator', 'set and remove secrets, whose values no one can read'),
  manage: may('owner', 'manage the keys, roles, rules and limits of the project, and read its audit log'),
  administer: may(
    'admin',
    'add, change and remove projects, manage groups and other administrators, rotate encryption keys, and read the whole audit log',
  ),
} as const satisfies Record<string, ActionKind>;

export type Action = keyof typeof actions;

const ranks = new Map<Role | undefined, number>(roles.map((role, index) => [role, index]));

/** Below all roles if there is none. */
export function rank(role: Role | undefined): number {
  return ranks.get(role) ?? -1;
}

export function roleMay(role: Role | undefined, action: Action): boolean {
  return rank(role) >= rank(actions[action].role);
}

export function higher(one: Role | undefined, other: Role | undefined): Role | undefined {
  return rank(one) >= rank(other) ? one : other;
}

function may(role: Role, meaning: string): ActionKind {
  return { role, meaning };
}
