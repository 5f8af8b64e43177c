/** What Switchboard has to do for its users. Tests cite an id in their titles, as in `[M1]`. */
interface Requirement {
  id: string;
  text: string;
  /** Whether it is built: a due requirement that no test cites fails the suite. */
  due: boolean;
}

const due = true;

export const requirements: Requirement[] = [
  // Many servers in one agent
  row('M1', due, 'Several configured servers are started, and each finishes the handshake.'),
  row(
    'M2',
    due,
    'Each server has a process of its own, known by its name, and its own sequence of request ids.',
  ),
  row('M3', due, 'The tools of all servers, five of one and one of another, are offered to Claude together.'),
  row('M4', due, 'A registry tells which server a tool belongs to; native tools belong to `native`.'),
  row(
    'M5',
    due,
    'When two servers have a tool of the same name, a warning is logged and the later one wins.',
  ),
  row(
    'M6',
    due,
    'A tool call of Claude reaches the server that owns the tool, and its result reaches Claude.',
  ),
  row('M7', due, 'A native tool runs in the process itself, without any MCP call.'),
  row('M8', due, 'A call of a tool that nobody has gives Claude the tool result `Unknown tool: {name}`.'),
  row(
    'M9',
    due,
    'A server sees the environment configured for it, and neither that of another server nor ours.',
  ),
  row(
    'M10',
    due,
    'A server is started with its configured command and arguments and spoken to over stdin and stdout.',
  ),
  row(
    'M11',
    due,
    'An agent starts its servers one after the other; when one fails, the started ones are stopped again.',
  ),
  row('M12', due, 'Stopping an agent ends every process that it started, their children too.'),
  row('M13', due, 'The first chat starts the servers, once, and later chats use the running ones.'),

  // The aggregator
  row('A1', due, 'The tools of all enabled servers are one list, and each tool knows its server.'),
  row('A2', due, 'Names in `tools/list` are unique, and each tool carries which server it is from.'),
  row('A3', due, 'A tool call goes to the server that has the tool, and its answer comes back.'),
  row('A4', due, 'A call of an unknown tool is answered with a protocol error that names the tool.'),
  row('A5', due, 'A call to a server that is down is answered with an error that says so, and is logged.'),
  row(
    'A6',
    due,
    'Resource URIs have the form `resource://server/…` and tell both the server and the resource.',
  ),
  row('A7', due, 'Resources, templates and prompts of all servers are one list each, URIs in our form.'),
  row('A8', due, 'A project id in the metadata of a request limits tools and resources to that project.'),
  row('A9', due, 'Without a project id, every enabled server that the caller may see is in scope.'),
  row('A10', due, 'Enabling a server adds its tools at once, and clients are told.'),
  row('A11', due, 'Disabling a server removes its tools at once; calls in flight still finish.'),
  row('A12', due, 'A single tool is switched on or off without any restart.'),
  row(
    'A13',
    due,
    'Many clients call at the same time, with the same ids too, and each gets its own answers.',
  ),
  row(
    'A14',
    due,
    'A server gets at most as many calls at a time as its limit allows; the others wait in a queue.',
  ),

  // Servers of a project
  row('P1', due, 'The servers of a project are rows of `kb.project_mcp_servers` with the agreed columns.'),
  row('P2', due, 'The servers in a product manifest become rows, and go with the product that brought them.'),
  row('P3', due, 'A stdio server is started as a child process with its environment and speaks MCP.'),
  row(
    'P4',
    due,
    'Variables are filled from the secrets of the project; a missing one fails the connection and is named.',
  ),
  row('P5', due, 'A child process that is not needed any more gets SIGTERM, and after a while SIGKILL.'),
  row('P6', due, 'An SSE server is reached at its URL with the configured headers.'),
  row(
    'P7',
    due,
    'A dropped SSE connection is opened again with growing pauses; calls meanwhile fail at once.',
  ),
  row('P8', due, 'The tools of a server become ADK tools under their own names.'),
  row('P9', due, 'An agent gets the answer of a server to its call, and the call is recorded.'),
  row('P10', due, 'A server is connected when it is first needed and then kept.'),
  row('P11', due, 'All agents of a project share one connection to each server.'),
  row(
    'P12',
    due,
    'After three failed connects a server is refused at once for 60 seconds, then tried again.',
  ),

  // Hosting
  row(
    'H1',
    due,
    'Registering an image with a stdio bridge gives a running container and a stored row, `ready`.',
  ),
  row(
    'H2',
    due,
    'Registering an image with a port and no bridge gives a server that is reachable over HTTP.',
  ),
  row('H3', due, 'The environment given at registration is there inside the container.'),
  row(
    'H4',
    due,
    'A call over HTTP becomes JSON-RPC on the container’s stdin, and its answer becomes HTTP JSON.',
  ),
  row('H5', due, 'A JSON-RPC error of a hosted server becomes an HTTP error with the same code and message.'),
  row(
    'H6',
    due,
    'A call without an answer in time is a timeout: logged, the server left alone, no answers mixed up.',
  ),
  row('H7', due, 'Calls to one hosted stdio server are made one after the other.'),
  row('H8', due, 'All registered servers start with the program, at the same time, and none of them twice.'),
  row(
    'H9',
    due,
    'A server that exits unexpectedly runs again within 5 seconds, its exit code and stderr logged.',
  ),
  row(
    'H10',
    due,
    'A server that keeps crashing is restarted after growing pauses, and its health shows a warning.',
  ),
  row('H11', due, 'When the program is told to stop, containers get SIGTERM, and SIGKILL after 30 seconds.'),
  row('H12', due, 'A restart on request gives a new container and sets the counters of crashes back.'),
  row('H13', due, 'The status of a server tells state, uptime, restarts, last crash, CPU and memory.'),
  row('H14', due, 'The list of hosted servers tells status, image and a summary, and never a secret.'),
  row(
    'H15',
    due,
    'A server that does not answer the heartbeat is shown as `unresponsive` and not restarted.',
  ),
  row(
    'H16',
    due,
    'Without limits of its own, a container gets half a CPU, 512 MB of memory and 1 GB of disk.',
  ),
  row('H17', due, 'Limits given at registration are enforced.'),
  row(
    'H18',
    due,
    'gVisor is chosen before Firecracker and E2B, and isolation is never weaker than asked for.',
  ),
  row('H19', due, 'Named volumes outlive the containers that use them.'),
  row('H20', due, 'What a server wrote to its volume before a crash is there after it.'),

  // The gateway
  row('G1', due, 'A client of two servers sees one list with unique names and the source of each tool.'),
  row(
    'G2',
    due,
    'Tools of the same name are set apart by server, callable so, and the prefix can be chosen.',
  ),
  row('G3', due, 'A tool that a server adds later is announced to connected clients and listed.'),
  row('G4', due, 'Calls of a tool that several servers share go round them evenly, and none is lost.'),
  row('G5', due, 'A client’s preference for certain servers is respected where that is possible.'),
  row(
    'G6',
    due,
    'When the chosen server is unavailable, another is tried; only when all fail there is an error.',
  ),
  row('G7', due, 'When a server disconnects during a request, that request fails clearly and others go on.'),
  row('G8', due, 'A server that comes back is used again for new calls; nothing is replayed.'),
  row('G9', due, 'When all servers are down, the error says that none is available; recovery needs nobody.'),
  row(
    'G10',
    due,
    'Resources of all servers are listed with the server in their URIs, and reads find their way.',
  ),
  row('G11', due, 'A reference to a resource of another server is routed to that server.'),
  row(
    'G12',
    due,
    'A changed list of any server reaches every client, gathered into one notice for each list.',
  ),
  row('G13', due, 'An updated resource is announced to the clients that subscribed to it and to no others.'),
];

function row(id: string, isDue: boolean, text: string): Requirement {
  return { id, text, due: isDue };
}
