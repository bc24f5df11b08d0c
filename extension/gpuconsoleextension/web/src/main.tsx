import { render } from "preact";
import { App } from "./App";
import { startClock } from "./clock";
import "./styles/tokens.css";
import "./styles/base.css";
import "./styles/parts.css";
import "./styles/tables.css";
import "./styles/views.css";

startClock();
render(<App />, document.getElementById("app")!);
