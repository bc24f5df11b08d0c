import { render } from "preact";
import { App } from "./App";
import { startClock } from "./clock";
import "./styles/tokens.css";
import "./styles/base.css";
import "./styles/parts.css";
import "./styles/bars.css";
import "./styles/tables.css";
import "./styles/views.css";
import "./styles/nodes.css";
import "./styles/events.css";
import "./styles/cost.css";
import "./styles/widths.css";

startClock();
render(<App />, document.getElementById("app")!);
